"""Reading and writing of JSON lines: each input object is written again with additional members.

It serves files as well as request-response protocols: from a pipe, the available lines are read, evaluated and answered
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import IO, Any, cast

from gradcli.io import by_polars, json_text
from gradcli.rows.formats import records
from gradcli.rows.formats.blocks import RowBlock, UnparsedPiece
from gradcli.rows.formats.json_lines import JsonLines, Members, from_text, members, numbers
from gradcli.rows.formats.reading import ByteRange, ColumnSelection, TableReadOptions, TextReader
from gradcli.rows.formats.sources import Stream


def plain(series: Any) -> Any:
    """A column in which types that JSON lacks are texts, in lists and objects too: dates and times in ISO 8601, decimal
    numbers with all digits, bytes in hexadecimal."""
    polars = by_polars.required("a table of rows")
    return polars.select(_plain(polars.lit(series), series.dtype, polars)).to_series()


def _plain(column: Any, kind: Any, polars: Any) -> Any:
    if isinstance(kind, polars.Array):
        return _plain(column.arr.to_list(), polars.List(kind.inner), polars)
    if isinstance(kind, polars.List):
        return column.list.eval(_plain(polars.element(), kind.inner, polars))
    if isinstance(kind, polars.Struct):
        fields = [_plain(polars.field(field.name), field.dtype, polars) for field in kind.fields]
        return column.struct.with_fields(fields)
    if kind == polars.Binary:
        return column.bin.encode("hex")
    if kind.is_temporal():
        return column.dt.to_string("iso")
    return column.cast(polars.String) if kind.is_decimal() or kind in (polars.Categorical, polars.Enum) else column


FORMAT = "jsonl"
# The member of an output object that says why its line failed.
ERROR = "error"


class LinesReader(TextReader):
    """A table of JSON lines, of which `head` has been read. Its columns are the keys of the first object; any name is a
    column where there is no first object."""

    format = FORMAT

    def __init__(self, stream: Stream, head: bytes, reading: TableReadOptions, part: ByteRange | None = None) -> None:
        super().__init__(stream, reading, part)
        self._head = head
        first = JsonLines(head[: records.last_line_end(head)] or head)
        self.columns = [*next(filter(None, first.objects), {})]
        # In a protocol, there is no second line before the first one is answered.
        self.any_column = not self.columns
        self._answers_blank = stream.waits

    def pieces(self, chosen: ColumnSelection) -> Iterator[UnparsedPiece]:
        chosen = chosen._replace(to=chosen.to or FORMAT)
        all_columns = chosen.kept is None and chosen.to != FORMAT
        if all_columns:
            chosen = chosen._replace(kept=self.columns)
        head, read = self._head, cast("Callable[[int], bytes]", partial(self._stream.read, timeout=0))
        if self._part is not None:
            head, read = b"", self._stream.within(*self._part)
        for data in records.blocks(read, records.last_line_end, self._block, head):
            yield UnparsedPiece(len(data), partial(_block, data, chosen, all_columns, self._answers_blank))


def _block(data: bytes, chosen: ColumnSelection, all_columns: bool, answers_blank: bool) -> RowBlock:
    """The rows of some text with the chosen columns. `all_columns` says that these are all of the first line, since no
    others were chosen."""
    lines = JsonLines(data, answers_blank)
    own: dict[str, Any] = {"lines": lines.texts}
    kept = chosen.kept
    if kept is None:
        lines.refuse({**dict.fromkeys(chosen.results, "a result is called"), ERROR: "says why a line fails"})
    if kept is not None and chosen.to == FORMAT:
        own = {"lines": [text if o is None else _only(text, kept) for text, o in zip(lines.texts, lines.objects)]}
    elif kept is not None:
        own = {"fields": _frame(lines, kept), "lost": lines.others(kept) if all_columns else ()}
    return RowBlock(
        rows=len(lines.texts),
        numbers={name: numbers(lines.items(name)) for name in chosen.needed},
        texts={name: [item if type(item) is str else None for item in lines.items(name)] for name in chosen.texts},
        failed=lines.failed,
        **own,
    )


def _only(text: str, columns: Sequence[str]) -> str:
    """The text of an object with only some of its members."""
    found = members(text)
    return "{" + ",".join(f"{json_text.dumps(name)}:{found[name]}" for name in columns if name in found) + "}"


def _frame(lines: JsonLines, columns: Sequence[str]) -> Any:
    """The members of the objects as a data frame of texts: strings by their value, others as they are written."""
    polars = by_polars.required("a table of rows")
    rows = [{} if o is None else members(text) for text, o in zip(lines.texts, lines.objects)]
    found = {name: [_field(row.get(name), o) for row, o in zip(rows, lines.items(name))] for name in columns}
    return polars.DataFrame(found, schema=dict.fromkeys(columns, polars.String))


def _field(text: str | None, item: Any) -> str | None:
    return item if type(item) is str or item is None else text


class LinesWriter:
    """Writes JSON lines: those of the input with additional members, or objects of the columns of other formats."""

    def __init__(self, stream: IO[bytes], names: Sequence[str], columns: Sequence[str]) -> None:
        self._stream = stream
        self._columns = columns
        self._members = Members(names)
        self.rows = 0

    def prepared(self, block: RowBlock, results: Mapping[str, Any], null: Any, skip: Any = None) -> tuple[int, bytes]:
        texts = list(block.lines) if block.lines is not None else _objects(block, self._columns)
        for row, why in block.failed.items() if block.lines is not None else ():
            texts[row] = json_text.dumps({ERROR: why, "line": texts[row]})
        made = self._members.added(texts, results, null)
        if skip is not None:
            made = [*compress(made, (~skip).tolist())]
        return len(made), "".join(f"{text}\n" for text in made).encode("utf-8", "surrogateescape")

    def write(self, prepared: tuple[int, bytes]) -> None:
        rows, data = prepared
        self._stream.write(data)
        self.rows += rows

    def close(self) -> None:
        """Do nothing: the format has no end mark."""

    abandon = close


def _objects(block: RowBlock, columns: Sequence[str]) -> list[str]:
    """The rows as JSON objects. In columns without types, texts that are written as JSON numbers become numbers."""
    names = [json_text.dumps(name) for name in columns]
    texts = []
    for series in block.fields.get_columns():
        texts.append([*map(json_text.dumps, plain(series).to_list())] if block.is_typed else [*map(from_text, series)])
    return ["{" + ",".join(f"{n}:{v}" for n, v in zip(names, row)) + "}" for row in zip(*texts)] or ["{}"] * block.rows
