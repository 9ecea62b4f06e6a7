"""Keywords of Python and other languages that the language lacks, with a hint for each."""

from __future__ import annotations

from gradcli.errors import ProgramSyntaxError, Proposal, Span

_FUNCTION = "define a function as f(x) = …"
_VALUE = "the value of a program is that of its last statement"
_ASSIGN = "write name = value"

FOREIGN_WORDS = {
    "function": _FUNCTION,
    "fn": _FUNCTION,
    "print": _VALUE,
    "let": _ASSIGN,
    "var": _ASSIGN,
    "const": _ASSIGN,
    "elseif": Proposal("write 'elif'", "elif"),
    "then": "write if condition { … } else { … }",
    "is": Proposal("write '==' to compare", "=="),
    "del": "leave it out",
    "global": "leave it out",
    "nonlocal": "leave it out",
    "assert": "leave it out",
    "with": "write the statements of its block alone",
    "class": "define functions, as in f(x) = …",
    "try": "errors end the program",
    "except": "errors end the program",
    "raise": "errors end the program",
    "yield": _FUNCTION,
    "async": _FUNCTION,
    "await": _FUNCTION,
}

_DIFF = "gradcli diff 'x^2' prints the derivative, and diff(y, x) is one within a program"
_INTEGRALS = "integrate(exp(-t), t, 0, 1) is the integral by t from 0 to 1"
_SOLVE = "gradcli solve finds roots: gradcli solve 'x^2 = 2' x=0..5"
_MINIMIZE = "gradcli minimize finds a minimum from a start: gradcli minimize '(x - 1)^2' x=0"
_LIMIT = "limit(sin(x)/x, x, 0) is the limit at x = 0"
_SERIES = "gradcli series 'exp(x)' x=0 prints the Taylor polynomial"
_PLOT = "gradcli plot 'sin(x)' x=0..6 draws it"
# Commands of Mathematica, and words of questions in English, in lower case.
FOREIGN_COMMANDS = {
    **dict.fromkeys(("derivative", "differentiate", "deriv"), _DIFF),
    **dict.fromkeys(("integrate", "nintegrate", "integral"), _INTEGRALS),
    **dict.fromkeys(("solve", "nsolve", "findroot", "roots", "reduce"), _SOLVE),
    **dict.fromkeys(("minimize", "nminimize", "findminimum"), _MINIMIZE),
    **dict.fromkeys(("maximize", "nmaximize", "findmaximum"), "gradcli minimize --max finds a maximum"),
    **dict.fromkeys(("limit", "lim"), _LIMIT),
    **dict.fromkeys(("series", "taylor"), _SERIES),
    **dict.fromkeys(("plot", "graph", "draw", "plot3d", "contourplot"), _PLOT),
    **dict.fromkeys(("simplify", "fullsimplify"), "gradcli diff --simplify simplifies derivatives"),
    **dict.fromkeys(("factor", "expand"), "formulas are written as they are here: derivatives alone are computed"),
    **dict.fromkeys(("findfit", "nonlinearmodelfit", "linearmodelfit"), "gradcli fit fits a model to data"),
}


def foreign_word(word: str, span: Span) -> ProgramSyntaxError:
    """The error for one of FOREIGN_WORDS."""
    return ProgramSyntaxError(f"'{word}' is not part of the language", hint=FOREIGN_WORDS[word], span=span)
