"""The errors of a command line with an unknown command or option, with hints at what was meant."""

from __future__ import annotations

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
}
# Names that other tools use for the option with the start of a search.
_STARTS = ("--start", "--init", "--initial", "--guess", "--p0", "--x0")
# Command names that other tools use, and the hints for them.
_COMMAND_HINTS = {
    "maximize": "gradcli minimize --max finds a maximum",
    "maximise": "gradcli minimize --max finds a maximum",
    "minimise": "did you mean 'minimize'?",
    "optimize": "did you mean 'minimize'?",
    "grad": "gradcli eval prints the gradient, gradcli diff derivatives as formulas",
    "gradient": "gradcli eval prints the gradient, gradcli diff derivatives as formulas",
    "derivative": "gradcli diff prints derivatives as formulas, gradcli eval their values",
    "differentiate": "gradcli diff prints derivatives as formulas, gradcli eval their values",
    "calc": "did you mean 'eval'?",
    "run": "did you mean 'eval'?",
    "functions": "did you mean 'ops'?",
    "taylor": "did you mean 'series'?",
    "root": "did you mean 'solve'?",
    "roots": "did you mean 'solve'?",
    "version": "gradcli --version shows it",
    "simplify": "gradcli diff --simplify simplifies derivatives",
    **dict.fromkeys(
        ("integrate", "integral", "int"), "trapezoid(y, x) in a program adds values up; there are no formulas"
    ),
    "limit": "gradcli eval has the limit of a quotient such as sin(x)/x at x=0",
    **dict.fromkeys(("factor", "expand"), "the formulas here are derivatives alone: gradcli diff prints them"),
    **dict.fromkeys(("graph2d", "draw", "chart"), "did you mean 'plot'?"),
    **dict.fromkeys(("jacobian", "hessian"), "gradcli eval has --jacobian, and --order 2 for second derivatives"),
    **dict.fromkeys(("regress", "regression", "lm", "nls", "curve_fit"), "did you mean 'fit'?"),
    **dict.fromkeys(
        ("repl", "interactive", "console"),
        "gradcli shell is an interactive session; gradcli map - --from jsonl answers line by line",
    ),
}


def unknown_command(name: str, commands: Collection[str]) -> UsageError:
    a_word = name.isidentifier() and "_" not in name
    general = "gradcli --help lists the commands" if a_word else f"gradcli eval {name!r} evaluates a program"
    otherwise = _COMMAND_HINTS.get(name.casefold(), general)
    hint = otherwise if name.casefold() in _COMMAND_HINTS else did_you_mean(name, commands, otherwise)
    return UsageError(f"there is no command {name!r}", hint=hint)


def unknown_option(
    word: str, options: Iterable[str], path: str, elsewhere: Callable[[str], Sequence[str]]
) -> UsageError:
    """The error of an option that `path`, as in `gradcli eval`, lacks; `elsewhere` gives the commands that have it."""
    known = [*(name for name in options if name.startswith("--")), "--help"]
    if path == "gradcli help":
        return UsageError(f"there is no option {word}", hint=f"{path} {word.lstrip('-')} explains it")
    if _OPTION_SYNONYMS.get(word, "").partition(" ")[0] in known:
        return UsageError(f"there is no option {word}", hint=f"did you mean {_OPTION_SYNONYMS[word]}?")
    if word in _STARTS and path != "gradcli":
        hint = "a start is a value behind the program: x=1 in gradcli fit and minimize, x~1 in gradcli solve"
        return UsageError(f"there is no option {word}", hint=hint)
    meant = [name for name in known if name.startswith(f"-{word}")]
    close = meant[0] if len(meant) == 1 else closest_word(word, known)
    hint = f"did you mean {close}?" if close else f"{path} --help lists the options"
    if path != "gradcli" and (others := elsewhere(word)):
        hint = f"{word} is an option of gradcli {', gradcli '.join(others)}"
    return UsageError(f"there is no option {word}", hint=hint)
