"""The errors of a command line with an unknown command or option, with hints at what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from gradcli.errors import UsageError, closest_word, did_you_mean

# Option names that other tools use, and the equivalent options here.
_OPTION_SYNONYMS = {
    **dict.fromkeys(("--hessian", "--derivative", "--derivatives", "--degree", "--terms"), "--order"),
    **dict.fromkeys(("--format", "--as"), "--json"),
    **dict.fromkeys(("--constraint", "--constraints", "--st"), "--subject-to"),
    **dict.fromkeys(("--weights", "--errors", "--yerr"), "--sigma"),
    **dict.fromkeys(("--delimiter", "--sep"), "--separator"),
    **dict.fromkeys(("--language", "--lang"), "--to"),
    **{f"--{language}": f"--to {language}" for language in ("latex", "python", "sql", "polars")},
    **{"--by": "--wrt", "--tex": "--to latex", "--numpy": "--to python"},
    **dict.fromkeys(("--maximize", "--maximise"), "--max"),
    **dict.fromkeys(("--out", "--save"), "--output"),
    **dict.fromkeys(("--silent",), "--quiet"),
    "--port": "--http",
}
# The command, with an option, that a hint proposes.
_PROPOSED = re.compile(r"did you mean '(\w+)'\?|^gradcli (\w+ --\w+) ")
# Names that other tools use for the option with the start of a search.
_STARTS = ("--start", "--init", "--initial", "--guess", "--p0", "--x0")
# Names that other tools use for the option with a table.
_TABLES = ("--input", "--in", "--data", "--csv", "--table", "--infile", "--input-file", "--parquet")
# Command names that other tools use, and the hints for them.
_COMMAND_HINTS = {
    **dict.fromkeys(("maximize", "maximise", "max", "maximum"), "gradcli minimize --max finds a maximum"),
    **dict.fromkeys(("minimise", "min", "minimum", "optimize", "optimise"), "did you mean 'minimize'?"),
    **dict.fromkeys(("grad", "gradient"), "gradcli eval prints the gradient, gradcli diff derivatives as formulas"),
    **dict.fromkeys(
        ("derivative", "differentiate", "derive", "deriv", "d"),
        "gradcli diff prints derivatives as formulas, gradcli eval their values",
    ),
    **dict.fromkeys(("calc", "calculate", "compute", "evaluate", "value", "run"), "did you mean 'eval'?"),
    **dict.fromkeys(("functions", "list", "search"), "did you mean 'ops'?"),
    **dict.fromkeys(("taylor", "maclaurin", "expansion"), "did you mean 'series'?"),
    **dict.fromkeys(("tangent", "linearize", "linearise"), "gradcli series 'x^3 - 2x' x=1 --order 1 prints a tangent"),
    **dict.fromkeys(("root", "roots", "zero", "zeros", "equation", "intersect"), "did you mean 'solve'?"),
    **dict.fromkeys(("odeint", "simulate", "ivp", "dsolve"), "did you mean 'ode'?"),
    **dict.fromkeys(("uncertainty", "error", "errors", "uncertainties"), "did you mean 'propagate'?"),
    **dict.fromkeys(
        ("table", "rows", "apply", "csv"), "gradcli map 'price*qty' data.csv computes a program for each row"
    ),
    **dict.fromkeys(("verify", "gradcheck"), "did you mean 'check'?"),
    **dict.fromkeys(("steps", "chain", "chainrule"), "did you mean 'explain'?"),
    **dict.fromkeys(("latex", "tex", "sql", "python"), "gradcli diff 'x^2' --to {name} writes derivatives in it"),
    **dict.fromkeys(("mcp", "http", "server"), "did you mean 'serve'?"),
    "version": "gradcli --version shows it",
    "simplify": "gradcli diff --simplify simplifies derivatives",
    **dict.fromkeys(
        ("integrate", "integral", "int"), "gradcli eval 'integrate(exp(-t), t, 0, 1)' prints an integral from 0 to 1"
    ),
    **dict.fromkeys(("limit", "lim"), "gradcli eval 'limit(sin(x)/x, x, 0)' prints a limit"),
    **dict.fromkeys(("sum", "nsum"), "gradcli eval 'nsum(1/n^2, n, 1, inf)' prints a sum"),
    **dict.fromkeys(("factor", "expand"), "the formulas here are derivatives alone: gradcli diff prints them"),
    **dict.fromkeys(("graph2d", "draw", "chart"), "did you mean 'plot'?"),
    **dict.fromkeys(("jacobian", "hessian"), "gradcli eval has --jacobian, and --order 2 for second derivatives"),
    **dict.fromkeys(("regress", "regression", "lm", "nls", "curve_fit"), "did you mean 'fit'?"),
    **dict.fromkeys(
        ("repl", "interactive", "console"),
        "gradcli shell is an interactive session; gradcli map - --from jsonl answers line by line",
    ),
}


class UnknownWordError(UsageError):
    """An unknown command or option. The hint proposes to replace `word` by the words of `proposed`; where that fails on
    the program of the command line, `otherwise` is the hint."""

    def __init__(self, message: str, hint: str, word: str, proposed: str, otherwise: str) -> None:
        super().__init__(message, hint=hint)
        self.word, self.proposed, self.otherwise = word, proposed, otherwise


def unknown_command(name: str, commands: Collection[str], words: Sequence[str]) -> UsageError:
    """The error for an unknown command that is followed by `words`."""
    # Imported here because only an incorrect command line needs it.
    from shlex import join, quote

    from gradcli.io import system

    a_word = name.isidentifier() and "_" not in name
    if a_word:
        general = "gradcli --help lists the commands"
    elif system.exists(name):
        general = f"gradcli map 'price*qty' {quote(name)} computes a program for each row of a table"
    elif any(map(system.exists, words)):
        general = f"gradcli map {join([name, *words])} computes a program for each row of a table"
    else:
        general = f"gradcli eval {join([name, *words])} evaluates a program"
    otherwise = _COMMAND_HINTS.get(name.casefold(), general).replace("{name}", name.casefold())
    hint = otherwise if name.casefold() in _COMMAND_HINTS else did_you_mean(name, commands, otherwise)
    message = f"there is no command {name!r}"
    proposed = _PROPOSED.search(hint or "")
    if proposed is None:
        return UsageError(message, hint=hint)
    return UnknownWordError(message, hint or "", name, proposed[1] or proposed[2], general)


def _same_words(name: str, other: str) -> bool:
    """Return whether two options consist of the same words, in any order."""
    return sorted(name.strip("-").split("-")) == sorted(other.strip("-").split("-"))


def unknown_option(
    word: str, options: Iterable[str], path: str, elsewhere: Callable[[str], Sequence[str]]
) -> UsageError:
    """The error of an option that `path`, as in `gradcli eval`, lacks; `elsewhere` gives the commands that have it."""
    known = [*(name for name in options if name.startswith("--")), "--help"]
    message, otherwise = f"there is no option {word}", f"{path} --help lists the options"
    if path == "gradcli help":
        return UsageError(message, hint=f"{path} {word.lstrip('-')} explains it")
    if _OPTION_SYNONYMS.get(word, "").partition(" ")[0] in known:
        proposed = _OPTION_SYNONYMS[word]
        return UnknownWordError(message, f"did you mean {proposed}?", word, proposed, otherwise)
    if (meant_to := _OPTION_SYNONYMS.get(word, "")).startswith("--to ") and path != "gradcli":
        return UsageError(message, hint=f"gradcli diff {meant_to} writes derivatives in it")
    if word in _STARTS and path != "gradcli":
        hint = "a start is a value behind the program: x=1 in gradcli fit and minimize, x~1 in gradcli solve"
        return UsageError(message, hint=hint)
    if word in _TABLES and path != "gradcli":
        return UsageError(message, hint="a table stands behind the program: gradcli map 'price*qty' data.csv")
    if path != "gradcli" and (others := elsewhere(word)):
        return UsageError(message, hint=f"{word} is an option of gradcli {', gradcli '.join(others)}")
    meant = [name for name in known if name.startswith(f"-{word}") or _same_words(name, word)]
    close = meant[0] if len(meant) == 1 else closest_word(word, known)
    if close:
        return UnknownWordError(message, f"did you mean {close}?", word, close, otherwise)
    return UsageError(message, hint=otherwise)
