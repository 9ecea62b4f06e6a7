"""Words of Python and its neighbours that people try, and what to write instead."""

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


def foreign_word(word: str, span: Span) -> ProgramSyntaxError:
    """The error for one of FOREIGN_WORDS."""
    return ProgramSyntaxError(f"'{word}' is not part of the language", hint=FOREIGN_WORDS[word], span=span)
