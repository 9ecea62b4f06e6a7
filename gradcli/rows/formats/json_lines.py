"""Parsing of JSON lines into objects and numbers, and appending of members to their texts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from gradcli import arrays
from gradcli.errors import abbreviated
from gradcli.io import json_text
from gradcli.io.json_numbers import SPECIAL_NUMBERS, is_number, skip_space
from gradcli.rows.formats.blocks import MOST_LOST, Column, without
from gradcli.rows.formats.columns import MISSING_TEXTS, failing_text, words_of

# Without the constants that Python accepts beyond JSON.
_DECODER = json.JSONDecoder(parse_constant=str)
# Python's integers have no signed zero, so that -0 becomes a float.
_SIGNED = json.JSONDecoder(parse_constant=str, parse_int=lambda text: -0.0 if text == "-0" else int(text))
# Decodes an object as the list of its members.
_PAIRS = json.JSONDecoder(parse_constant=str, object_pairs_hook=list)
_SIGNED_ZERO = re.compile(r"-0(?![.\deE])")
_SPACED_COLON = re.compile(r'"\s+:')
_NULL = "null"
# The separator of lines that are parsed as one list: a number that is hardly in a file.
_BETWEEN = 7091432587723106


class JsonLines:
    """The lines of some text, and their objects; where a line is not an object, that is None and the line is in
    `failed`.

    Blank lines are kept where each line is to be `answered`.
    """

    def __init__(self, data: bytes, answered: bool = False) -> None:
        text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        texts = map(str.strip, text.removesuffix("\n").split("\n") if text else ())
        self.texts = [*texts] if answered else [text for text in texts if text]
        self.failed: dict[int, str] = {}
        self._decoder = _SIGNED if "-0" in text and _SIGNED_ZERO.search(text) else _DECODER
        self.objects = self._together() or [self._object(row, text) for row, text in enumerate(self.texts)]
        if _may_repeat(text, sum(len(o) for o in self.objects if o is not None)):
            self._refuse_repeated()

    def _together(self) -> list[Mapping[str, Any] | None] | None:
        """All objects, parsed as one list in half of the time; None where not every line is an object.

        A separator, a number that occurs in no line and has only one spelling, is put between the lines. No object
        spans two lines if every second element of the list is a separator and there is one for each line break; then
        the element between two separators is that of one line.
        """
        if len(self.texts) < 2:
            return None
        text = f",{_BETWEEN},".join(self.texts)
        if text.count(str(_BETWEEN)) != len(self.texts) - 1:
            return None
        try:
            found = self._decoder.decode(f"[{text}]")
        except (ValueError, RecursionError):
            return None
        objects, between = found[::2], found[1::2]
        regular = {*map(type, objects)} == {dict} and {*map(type, between)} <= {int}
        return objects if regular and between == [_BETWEEN] * (len(self.texts) - 1) else None

    def _object(self, row: int, text: str) -> Mapping[str, Any] | None:
        if not text:
            self.failed[row] = "the line is blank"
            return None
        try:
            found = self._decoder.decode(text)
        except json.JSONDecodeError as error:
            what = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
            self.failed[row] = f"the line is not JSON: {what} at character {error.pos + 1}"
        except (ValueError, RecursionError):
            # A number with thousands of digits, or deeply nested lists.
            self.failed[row] = "the line is JSON that is too long or too deep"
        else:
            if type(found) is dict:
                return found
            self.failed[row] = "the line is no JSON object"
        return None

    def _refuse_repeated(self) -> None:
        """Mark objects with two members of the same name as failed."""
        for row, (text, found) in enumerate(zip(self.texts, self.objects)):
            if found is None or not _may_repeat(text, len(found)):
                continue
            pairs = _PAIRS.decode(text)
            if len(pairs) > len(found):
                name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
                self.objects[row], self.failed[row] = None, f"the line has the member {name!r} twice"

    def refuse(self, names: Mapping[str, str]) -> None:
        """Mark objects as failed that have a member of one of these names, which have another meaning in the output."""
        for row, found in enumerate(self.objects):
            if found is not None and not names.keys().isdisjoint(found):
                name = next(name for name in found if name in names)
                self.objects[row], self.failed[row] = None, f"the line has a member {name!r}, which {names[name]}"

    def others(self, keys: Iterable[str]) -> list[str]:
        """The first MOST_LOST names of members that are not in `keys`."""
        names = {*keys}
        found = dict.fromkeys(name for o in self.objects if o is not None and not names.issuperset(o) for name in o)
        return [*islice((name for name in found if name not in names), MOST_LOST)]

    def items(self, key: str) -> list[Any]:
        """The value of each object at a key, None where there is none."""
        return [None if o is None else o.get(key) for o in self.objects]


def _may_repeat(text: str, found: int) -> bool:
    """Return whether an object in a text may have two members of the same name, given the total number `found` of
    different ones. Without repetition, there are as many colons, or colons after quotes, as members."""
    if text.count(":") == found:
        return False
    return text.count('":') != found or _SPACED_COLON.search(text) is not None


def members(text: str) -> dict[str, str]:
    """The texts of the members of an object by key."""
    found: dict[str, str] = {}
    at = skip_space(text, text.index("{") + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = skip_space(text, skip_space(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[key] = text[start:end]
        at = skip_space(text, end)
        if text[at] == ",":
            at = skip_space(text, at + 1)
    return found


def numbers(items: Sequence[Any]) -> Column:
    """A column of numbers from JSON values: numbers, lists of numbers, and complex numbers as objects of `re` and
    `im`."""
    np = arrays.numpy_namespace()
    missing = np.zeros(len(items), "bool")
    # The sum is finite only where all numbers are.
    if {*map(type, items)} == {float} and math.isfinite(sum(items)):
        return Column(np.asarray(items, "float64"), missing, {})
    failing: dict[int, str] = {}
    found: list[Any] = [math.nan] * len(items)
    for row, item in enumerate(items):
        value = _number(item)
        if type(value) is str:
            failing[row] = value
        elif value is None:
            missing[row] = True
        else:
            found[row] = value
    words = words_of(items, missing)
    if all(type(value) is float for value in found):
        return Column(np.asarray(found, "float64"), missing, failing, words)
    if all(type(value) in (float, complex) for value in found):
        return Column(np.asarray(found, "complex128"), missing, failing, words)
    tensors = np.empty(len(found), "object")
    for row, value in enumerate(found):
        tensors[row] = np.asarray(value)
    return Column(tensors, missing, failing, words)


def _number(item: Any) -> Any:
    """The float, complex number or array of an item, None where it is missing or a word, or a message where it is not a
    number."""
    if type(item) is str:
        return _of_text(item)
    if item is None:
        return None
    if type(item) is bool:
        return f"{json_text.dumps(item)} is a truth value, and no number"
    if type(item) is list:
        try:
            if not all(map(_is_number_or_special, _leaves(item))):
                raise TypeError
            return arrays.numpy_namespace().asarray(item, "float64")
        except (TypeError, ValueError, OverflowError):
            return "it is a list of something else than numbers"
    if type(item) is dict:
        parts = [_number(item[part]) for part in ("re", "im")] if item.keys() == {"re", "im"} else []
        return complex(*parts) if {*map(type, parts)} == {float} else "it is an object"
    try:
        value = float(item)
    except OverflowError:
        value = math.inf
    return "it is a number too large for float64" if math.isinf(value) else value


def _is_number_or_special(item: Any) -> bool:
    """Return whether an item is a number, or the text of one that JSON lacks."""
    return type(item) in (int, float) or (type(item) is str and item in SPECIAL_NUMBERS)


def _leaves(items: list[Any]) -> Iterator[Any]:
    """The elements of nested lists."""
    stack: list[Any] = [items]
    while stack:
        item = stack.pop()
        if type(item) is list:
            stack += item
        else:
            yield item


def _of_text(text: str) -> float | str | None:
    """The number of a text that spells one that JSON lacks, such as "NaN"; None where the text is a missing value or a
    word; or a message, as for a number in quotes."""
    if text in SPECIAL_NUMBERS:
        return SPECIAL_NUMBERS[text]
    failing = failing_text(text.strip())
    if failing is not None or text.strip().lower() in MISSING_TEXTS:
        return failing
    try:
        float(text)
    except ValueError:
        return None
    return f"{abbreviated(text)!r} is a text, and no number: numbers of JSON have no quotes"


def from_text(text: str | None) -> str:
    """A field of another format as JSON: null where it is empty, a number where it is written as a JSON number, else a
    text."""
    if text is None or not text:
        return _NULL
    return text if is_number(text) else json_text.dumps(text)


class Members:
    """Appends members with these names to objects."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        heads = (json_text.dumps(name).replace("{", "{{").replace("}", "}}") for name in names)
        self._tail = ",".join(f"{head}:{{}}" for head in heads).format

    def added(self, texts: Sequence[str], results: Mapping[str, Any], null: Any) -> list[str]:
        """The objects in `texts` with the results of each row as their last members, null where `null` `[n]` is
        true."""
        columns = [_texts(*without(results[name], null)) for name in self._names]
        tails = map(self._tail, *columns) if columns else [""] * len(texts)
        return [_joined(text, tail) for text, tail in zip(texts, tails)]


def _joined(text: str, tail: str) -> str:
    before = text[: text.rindex("}")].rstrip()
    return f"{before}{',' if tail and not before.endswith('{') else ''}{tail}}}"


def _texts(values: Any, null: Any) -> list[str]:
    """The results of rows as JSON, null in rows marked by `null`."""
    numbers = values.tolist() if values.ndim == 1 and values.dtype.kind == "f" else None
    if numbers is not None and math.isfinite(sum(numbers)):
        texts = [*map(repr, numbers)]
    else:
        texts = [json_text.dumps(item) for item in values]
    for row in null.nonzero()[0].tolist():
        texts[row] = _NULL
    return texts
