"""Checks the hints of errors before they are printed: a proposed program must run, and its options must exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote

from gradcli import arrays
from gradcli.errors import BindingError, GradcliError, ProgramSyntaxError, Proposal, Span, UnknownNameError, WordError
from gradcli.io import system
from gradcli.language.names import scope
from gradcli.language.syntax import parse, tree
from gradcli.type_hints import Any

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Options after the name of another command are checked against that command.
_COMMAND = re.compile(r"\bgradcli ([a-z]+)")
_INSTALLS = re.compile(r"\b(?:pip|pipx|uv) ")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TABLE_NAME = re.compile(
    r"\.(?:csv|tsv|jsonl|ndjson|parquet|arrow|feather|json|txt|dat)(?:\.gz|\.zst)?$", re.IGNORECASE
)
_WITH_COLON = re.compile(rf"([^\W\d]\w*):({_NUMBER.pattern})")
_IS_VALUE = re.compile(r"\s*[^\W\d]\w*\s*[=~]")
# The commands that take several formulas.
_OF_SEVERAL = ("plot", "diff")


def check(error: GradcliError, name: str, options: Any, options_of: Callable[[str], Collection[str]]) -> None:
    """Remove from an error's hint proposals that would fail; the error was raised by command `name` with `options`.

    `options_of` gives the options of a command by its name.
    """
    if isinstance(error, WordError):
        error.hint = _of_word(error, name, options, options_of(name)) or error.hint
    elif isinstance(error, (ProgramSyntaxError, UnknownNameError)):
        error.hint = _of_file(error, options, options_of(name)) or error.hint
    hint = error.hint
    if name == "diff" and isinstance(hint, Proposal):
        hint = _differentiated(hint)
    while isinstance(hint, Proposal) and not _runs(hint, error, name, options):
        hint = hint.otherwise
    if hint is not None and not _INSTALLS.search(hint):
        known = {o for command in (name, *_COMMAND.findall(hint)) for o in options_of(command)}
        if not known.issuperset(_OPTION.findall(hint)):
            hint = "; ".join(p for p in hint.split("; ") if known.issuperset(_OPTION.findall(p))) or None
    error.hint = hint


def _of_word(error: GradcliError, name: str, options: Any, known: Collection[str]) -> str | None:
    """The hint for a word that is not NAME=VALUE, after a program that is the first word; None for other errors."""
    words: Sequence[str] = getattr(options, "words", None) or ()
    if error.source is None or error.source not in words[1:] or words[0] == "-" or options.file is not None:
        return None
    return _hint_at_word(error.source, name, words, known)


_TABLE = re.compile(r"[\w./\\-]+\.(?:csv|tsv|jsonl|ndjson|parquet|arrow|feather)", re.IGNORECASE)


def _of_file(error: GradcliError, options: Any, known: Collection[str]) -> str | None:
    """The hint for the name of a table in the place of the program; None for other errors.

    Whether there is the file is not asked, which a request of `gradcli serve` must not find out.
    """
    words: Sequence[str] = getattr(options, "words", None) or ()
    if not words or words[0] != error.source or not _TABLE.fullmatch(words[0]):
        return None
    if "--data" in known:
        return f"the program comes first, and --data {words[0]} draws the points of a table"
    return f"the program comes first: gradcli map 'price*qty' {words[0]} computes it for each row of a table"


_DERIVATIVE = re.compile(r"diff\((.+), ?(\w+)\)")


def _differentiated(hint: Proposal) -> Proposal:
    """A proposal diff(f, x) as f alone for the command `gradcli diff`, which differentiates its argument."""
    found = _DERIVATIVE.fullmatch(hint.texts[0]) if len(hint.texts) == 1 else None
    if found is None:
        return hint
    said = f"write {found[1]}, which gradcli diff differentiates; --wrt {found[2]} does so by {found[2]} alone"
    return Proposal(said, found[1], span=hint.span, otherwise=hint.otherwise)


def _runs(hint: Proposal, error: GradcliError, name: str, options: Any) -> bool:
    of_a_word = error.source in (getattr(options, "words", None) or ())[1:] and isinstance(error, BindingError)
    if not hint.whole and (of_a_word or error.source is None or (error.span is None and hint.span is None)):
        # The hint concerns a value, such as a distribution, and not the program.
        return True
    # Imported here because only incorrect programs need them.
    from gradcli.language.interpreter.proposal_checks import proposal_runs

    with arrays.using_namespace(None):
        values = dict(_values(options))
        proposed = list(hint.programs(error.source or "", error.span or Span(0, 0)))
        return all(
            _reads_as_much(text, error.source or "", values) and proposal_runs(text, new, values, _reader(name, values))
            for text, new in proposed
        )


def _reads_as_much(proposed: str, source: str, values: Iterable[str]) -> bool:
    """Return whether a proposal leaves out no name that has a value, as it does where `m` of `5 m` is taken for
    metres."""
    return all(name in proposed or name not in source for name in values)


def _reader(name: str, values: Mapping[str, Any]) -> Callable[[str], tree.Module]:
    """The function that parses the program of a command."""
    if name == "solve":
        from gradcli.language.equations import read_equations

        return lambda text: read_equations(text, values).program
    if name == "fit":
        from gradcli.models.fitting.notation.model_texts import read_model

        return lambda text: read_model(text).model if "~" in text else parse(text)
    return parse


def _values(options: Any) -> Iterator[tuple[str, Any]]:
    """The values of names among the words of the command line, as far as they are constants."""
    from gradcli.cli.arguments import inputs
    from gradcli.evaluation.constant_expressions import constant
    from gradcli.io import variables

    for word in getattr(options, "words", None) or ():
        with suppress(GradcliError):
            if inputs.is_binding(word):
                name, text, offset = variables.split_binding(word)
                yield name, constant(text, "float64", word, offset)


def _hint_at_word(word: str, name: str, words: Sequence[str], options: Collection[str]) -> str | None:
    """The hint for `word` among the words of command `name`, which has these options; None if no mistake is likely."""
    program, *others = words
    if any(other.count("[") != other.count("]") for other in others):
        return "quote a value that has spaces, as in 'x=[1, 2, 3]'"
    if "=" in word or "~" in word:
        joined = "; ".join([program, *(other for other in others if not _IS_VALUE.match(other))])
        return f"write {quote(joined)} for several equations" if name == "solve" else None
    reads = _names(program)
    given = [re.split("[=~]", other, maxsplit=1)[0].strip() for other in others if re.search("[=~]", other)]
    first = next((n for n in reads if n not in given), "x")
    if _TABLE_NAME.search(word) or system.exists(word):
        if name == "plot":
            return f"write --data {quote(word)} for the points of a table"
        rows = f"gradcli map {quote(program)} {quote(word)}"
        return f"{rows} computes it for each row, {first}=@{word}:{first} reads a column"
    numbers = [other for other in others if _NUMBER.fullmatch(other)]
    if word in reads:
        return _of_name(word, name, numbers, "--wrt" in options)
    if name == "diff" and word.startswith("d") and word[1:] in reads:
        return _of_name(word[1:], name, numbers, True)
    if (written := _WITH_COLON.fullmatch(word)) is not None:
        return f"write {written[1]}={written[2]}"
    if word in numbers:
        return _of_numbers(numbers, name, first)
    if name == "check" and len(reads) == 1 and ";" not in program and _names(word):
        return _of_derivative(word, program, reads[0])
    if name in _OF_SEVERAL and _names(word):
        formulas = "; ".join([program, *(other for other in others if "=" not in other)])
        return f"write {quote(formulas)} for several formulas"
    return None


def _names(text: str) -> list[str]:
    """The names that a program reads; none where it cannot be parsed."""
    try:
        return [n for n in scope.free_names(parse(text)) if n not in scope.CONSTANTS]
    except GradcliError:
        return []


def _of_name(word: str, name: str, numbers: Sequence[str], has_wrt: bool) -> str:
    if name == "plot":
        return f"write {word}={'..'.join(numbers) if len(numbers) == 2 else '0..10'} for its range"
    if name == "series":
        order = f" --order {numbers[0]}" if numbers and numbers[0].isdecimal() else ""
        return f"write {word}=0{order} for the series about {word} = 0"
    if name == "diff":
        return f"write --wrt {word} to differentiate by it"
    if numbers:
        return f"write {word}={numbers[0]} for its value"
    return f"write {word}=1 for its value" + (f", --wrt {word} to differentiate by it alone" if has_wrt else "")


def _of_derivative(word: str, program: str, name: str) -> str:
    """The hint for a program that is followed by its derivative, computed by hand, by its only name."""
    function, cotangent = [n for n in "fguv" if n not in (name, *_names(word))][:2]
    checked = f"{function}({name}) = {program} backward({cotangent}) = {cotangent}*({word}); {function}({name})"
    return f"write {quote(checked)} to check a derivative of your own"


def _of_numbers(numbers: Sequence[str], name: str, unbound: str) -> str:
    if name == "plot" and len(numbers) == 2:
        return f"write {unbound}={'..'.join(numbers)} for the range"
    if name == "series" and numbers[0].isdecimal():
        return f"write {unbound}=0 --order {numbers[0]} for the series about {unbound} = 0"
    return f"write {unbound}{'~' if name == 'solve' else '='}{numbers[0]}"
