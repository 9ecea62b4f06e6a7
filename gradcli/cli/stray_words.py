"""Hints for words behind a program that are no NAME=VALUE: a table, a name, a number or another formula."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from shlex import quote

from gradcli.errors import GradcliError
from gradcli.io import system
from gradcli.language.names import scope
from gradcli.language.syntax import parse

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TABLE = re.compile(r"\.(?:csv|tsv|jsonl|ndjson|parquet|arrow|feather|json|txt|dat)(?:\.gz|\.zst)?$", re.IGNORECASE)
_WITH_COLON = re.compile(rf"([^\W\d]\w*):({_NUMBER.pattern})")
_IS_VALUE = re.compile(r"\s*[^\W\d]\w*\s*[=~]")
# The commands that take several formulas.
_OF_SEVERAL = ("plot", "diff")


def hint(word: str, name: str, words: Sequence[str], options: Collection[str]) -> str | None:
    """The hint for `word` among the words of command `name`, which has these options; None where nothing is likely."""
    program, *others = words
    if any(other.count("[") != other.count("]") for other in others):
        return "quote a value that has spaces, as in 'x=[1, 2, 3]'"
    if "=" in word or "~" in word:
        joined = "; ".join([program, *(other for other in others if not _IS_VALUE.match(other))])
        return f"write {quote(joined)} for several equations" if name == "solve" else None
    reads = _names(program)
    given = [re.split("[=~]", other, maxsplit=1)[0].strip() for other in others if re.search("[=~]", other)]
    first = next((n for n in reads if n not in given), "x")
    if _TABLE.search(word) or system.exists(word):
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
    """The hint where the derivative of a program by its only name, computed by hand, stands behind it."""
    function, cotangent = [n for n in "fguv" if n not in (name, *_names(word))][:2]
    checked = f"{function}({name}) = {program} backward({cotangent}) = {cotangent}*({word}); {function}({name})"
    return f"write {quote(checked)} to check a derivative of your own"


def _of_numbers(numbers: Sequence[str], name: str, unbound: str) -> str:
    if name == "plot" and len(numbers) == 2:
        return f"write {unbound}={'..'.join(numbers)} for the range"
    if name == "series" and numbers[0].isdecimal():
        return f"write {unbound}=0 --order {numbers[0]} for the series about {unbound} = 0"
    return f"write {unbound}{'~' if name == 'solve' else '='}{numbers[0]}"
