"""Checks the hints of errors before they are printed: a proposed program must run, and its options must exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gradcli.errors import BindingError, GradcliError, ProgramSyntaxError, Proposal, Span, UnknownNameError, WordError
from gradcli.language.syntax import parse, tree

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Options after the name of another command are checked against that command.
_COMMAND = re.compile(r"\bgradcli ([a-z]+)")
_INSTALLS = re.compile(r"\b(?:pip|pipx|uv) ")


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
    """The hint for a word that is no NAME=VALUE behind a program that is the first word; else None."""
    words: Sequence[str] = getattr(options, "words", None) or ()
    if error.source is None or error.source not in words[1:] or words[0] == "-" or options.file is not None:
        return None
    # Imported here because few errors need it.
    from gradcli.cli import stray_words

    return stray_words.hint(error.source, name, words, known)


_TABLE = re.compile(r"[\w./\\-]+\.(?:csv|tsv|jsonl|ndjson|parquet|arrow|feather)", re.IGNORECASE)


def _of_file(error: GradcliError, options: Any, known: Collection[str]) -> str | None:
    """The hint where the name of a table stands in the place of the program; else None.

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
    from gradcli import arrays
    from gradcli.language.interpreter.proposal_checks import proposal_runs

    with arrays.using_namespace(None):
        values = dict(_values(options))
        proposed = list(hint.programs(error.source or "", error.span or Span(0, 0)))
        return all(
            _reads_as_much(text, error.source or "", values) and proposal_runs(text, new, values, _reader(name, values))
            for text, new in proposed
        )


def _reads_as_much(proposed: str, source: str, values: Iterable[str]) -> bool:
    """Whether a proposal leaves out no name that has a value, as it does where `m` of `5 m` is taken for metres."""
    return all(name in proposed or name not in source for name in values)


def _reader(name: str, values: Mapping[str, Any]) -> Callable[[str], tree.Module]:
    """The function that parses the program of a command."""
    if name == "solve":
        from gradcli.language.equations import read_equations

        return lambda text: read_equations(text, values).program
    if name == "fit":
        from gradcli.models.fitting.model_texts import read_model

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
