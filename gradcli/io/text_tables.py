"""Tables of texts, which results are printed as: aligned columns of plain text, and HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any


class Table(NamedTuple):
    """A table of texts; without a header the first column has the names of the rows. In a `drawn` table the first
    column contains line drawings, which must not be wrapped."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    drawn: bool = False


class ComplexText:
    """The parts of a complex number that are written already, as proved digits are: texts of decimals or of bounds, or
    floats that are not finite."""

    __slots__ = ("imag", "real")

    def __init__(self, real: str | float, imag: str | float) -> None:
        self.real, self.imag = real, imag

    def __str__(self) -> str:
        """Format as a Python complex number, `1.5-2.0j`; a bound of a magnitude is in parentheses."""
        real, imag = (f"({part})" if str(part).startswith("|") else str(part) for part in (self.real, self.imag))
        return f"{real}{'' if imag.startswith('-') else '+'}{imag}j"

    __repr__ = __str__


def has_complex_texts(value: object) -> bool:
    """Return whether a value is such a number, or an object array of them."""
    if isinstance(value, ComplexText):
        return True
    return getattr(getattr(value, "dtype", None), "kind", "") == "O" and any(
        isinstance(item, ComplexText)
        for item in value.flat  # type: ignore[attr-defined]
    )


# The number of significant digits to which numbers are rounded in tables, or None.
_PRECISION: ContextVar[int | None] = ContextVar("precision", default=None)
# Whether complex numbers are written by modulus and angle.
_POLAR: ContextVar[bool] = ContextVar("polar", default=False)


@contextmanager
def rounded(precision: int | None, *, polar: bool = False) -> Iterator[None]:
    """Within the block numbers are rounded to that many significant digits as text, and with `polar` complex numbers
    are written as `polar(modulus, angle)`."""
    token, form = _PRECISION.set(precision), _POLAR.set(polar)
    try:
        yield
    finally:
        _POLAR.reset(form)
        _PRECISION.reset(token)


def flat(value: Any) -> Iterable[Any]:
    """The numbers of a value one by one."""
    return value.ravel() if getattr(value, "ndim", 0) else (value,)


def number_text(value: Any) -> str:
    """A number or array as text; a long array is abbreviated."""
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return _complex_text(value)
    precision = _PRECISION.get()
    if precision is not None and not isinstance(value, (bool, str, int)) and value is not None:
        return _rounded_text(value, precision)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) in (float, int, str, ComplexText):
        return str(value)
    if value.ndim == 0:
        return str(value)
    # Object arrays contain strings, the proved digits of numbers.
    as_it_is: Any = {"object": str} if value.dtype == object else None
    return _array_text(value, floatmode="unique", formatter=as_it_is)


def _complex_text(value: Any) -> str:
    """Complex numbers as `1.0+2.0j`, or by modulus and angle."""
    if not getattr(value, "ndim", 0):
        return _one_complex_text(value)
    if _POLAR.get() or _PRECISION.get() is not None:
        return _array_text(value, formatter={"complex_kind": _one_complex_text})
    return _array_text(value, floatmode="unique")


def _one_complex_text(number: Any) -> str:
    if _POLAR.get():
        return f"polar({number_text(abs(number))}, {number_text(_angle(number))})"
    imaginary = number_text(number.imag)
    return f"{number_text(number.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"


def _angle(number: Any) -> Any:
    """The angle in radians, in the precision of the number."""
    angle = math.atan2(number.imag, number.real)
    return angle if type(number) is complex else number.real.dtype.type(angle)


def _rounded_text(value: Any, precision: int) -> str:
    def text(number: Any) -> str:
        return f"{float(number):.{precision}g}"

    if not getattr(value, "ndim", 0):
        return text(value)
    return _array_text(value, formatter={"float_kind": text} if value.dtype.kind == "f" else None)


def _array_text(value: Any, **options: Any) -> str:
    """An array as text, of which the middle is left out if it is long."""
    import numpy as np

    return str(np.array2string(value, separator=", ", threshold=200, edgeitems=3, max_line_width=100, **options))


def plain(table: Table) -> str:
    """Aligned columns, with two spaces between them."""
    cells = [[cell.split("\n") for cell in row] for row in (*([table.header] if table.header else []), *table.rows)]
    widths = [max(len(line) for row in cells for line in row[i]) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        for n in range(max(map(len, row))):
            parts = [(cell[n] if n < len(cell) else "").ljust(width) for cell, width in zip(row, widths)]
            lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


def members(rows: Mapping[str, Any]) -> Table:
    """A table with two columns, name and value; None is left out."""
    return Table((), [(name, number_text(value)) for name, value in rows.items() if value is not None])


def as_html(tables: Sequence[Table]) -> str:
    """The tables as HTML, with every text escaped."""
    # Imported here because its table of entities is long, and only notebooks need it.
    from html import escape

    def cell(text: str) -> str:
        return "<br>".join(map(escape, text.split("\n")))

    def row(first: str, *rest: str) -> str:
        return f"<tr><th>{cell(first)}</th>{''.join(f'<td>{cell(text)}</td>' for text in rest)}</tr>"

    def html(table: Table) -> str:
        head = "".join(f"<th>{cell(text)}</th>" for text in table.header)
        body = "".join(row(*texts) for texts in table.rows)
        return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"

    return "\n".join(map(html, tables))
