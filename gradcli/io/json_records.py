"""Reading of columns of `.jsonl` files, which hold one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.errors import BindingError
from gradcli.io import text_lines
from gradcli.io.json_numbers import charge_text, decode, expect_end, numbers
from gradcli.io.source import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The charges for each object and each of its members, in units of 1/8 of a step, beyond that of its line.
_OBJECT, _MEMBER = 5, 1


def read_json_records(source: Source, members: Sequence[str | None]) -> list[NDArray[Any]]:
    """For each member the values with this name, with shape (rows,), or (rows, …) for nested lists, and nan for null
    and missing ones; for None the values of the only name.

    Raises BindingError where a line is not an object, a name is in none of them, or a value is anything else.
    """
    sources = [source._replace(member=member) for member in members]
    records = _records(source)
    first = next(records, None)
    if first is None:
        raise source.error("it is empty", "give an object on each line")
    names = [s.choose("name", [*first]) if s.member is None else s.member for s in sources]
    found: dict[str, list[object]] = {name: [] for name in names}
    known = {*first}
    for record in chain([first], records):
        known.update(record.keys() & found.keys())
        for name, values in found.items():
            value = record.get(name)
            values.append("NaN" if value is None else value)
    for asked, name in zip(sources, names):
        if name not in known:
            raise asked.no_such_member("name", name, [*first])
    return [_array(asked, name, found[name]) for asked, name in zip(sources, names)]


def _records(source: Source) -> Iterator[dict[str, object]]:
    number = 0
    for lines in text_lines.lines(source, text_lines.beginning(source.stream, 3), source.stream):
        for line in lines:
            number += 1
            if line.strip():
                yield _record(source, line.rstrip("\r\n"), number)


def _record(source: Source, line: str, number: int) -> dict[str, object]:
    what = f"line {number} of {source.name}"
    charge_text(line)
    value, end = decode(line, 0, what, source.exact)
    expect_end(line, end, f"{what} goes on after its object", "put each object on a line of its own")
    if not isinstance(value, dict):
        raise source.error(f"line {number} is no object", 'give an object of names to values: {"x": 5, "y": [1, 2]}')
    limits.charge_steps(_OBJECT + _MEMBER * len(value))
    return value


def _array(asked: Source, name: str, values: list[object]) -> NDArray[Any]:
    try:
        array: Any = numbers(values, f"the list of {name!r}", asked.exact)
    except BindingError as error:
        raise asked.error(error.message, error.hint or "") from error
    asked.check_elements(array.size)
    return array  # type: ignore[no-any-return]
