"""The tables of an evaluation: a value, its derivatives, and what else was requested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradcli.arrays import is_array, is_complex
from gradcli.evaluation import session
from gradcli.io.text_tables import Table, has_complex_texts, number_text
from gradcli.type_hints import Any

# A sparse matrix with more entries is abbreviated in tables.
_MOST_ENTRIES = 200


def _is_complex(value: Any) -> bool:
    # Proved digits are texts.
    return has_complex_texts(value) or (is_array(value) and is_complex(value))


def evaluation_tables(result: session.Result, seconds: Mapping[str, float] | None = None) -> list[Table]:
    """The value, the derivatives, and whatever else was requested, a table each."""
    certified = result.certified or {}
    value = ("value", number_text(result.value))
    tables = [Table((), [(*value, f"certified: {_count(certified['value'])}") if certified else value])]
    for title, name, part in (
        ("gradient", "grad", result.grad),
        ("derivative", "derivatives", result.derivatives),
        ("jacobian", "jacobian", result.jacobian),
        ("retained", "retained", result.retained),
    ):
        # A complex value has no gradient, since it has no direction in which it grows.
        title = "derivative" if title == "gradient" and _is_complex(result.value) else title
        if name == "derivatives":
            # Those of first order stand before those of higher order.
            tables += _wirtinger_tables(result, certified)
        if part:
            tables.append(Table(("by" if title != "retained" else "of", title), _rows(part)))
        if part and certified:
            tables[-1] = _with_column(tables[-1], "certified", map(_count, certified[name].values()))
        if part and part is result.derivatives and result.digits_left:
            tables[-1] = _with_digits(tables[-1], result.digits_left)
    if result.coordinates is not None:
        tables.append(Table(("by", "row", "column", "derivative"), _entries(result)))
        if result.digits_left:
            tables[-1] = _with_digits(tables[-1], result.digits_left)
    if result.nodes:
        header = tuple(result.nodes[0])
        tables.append(Table(header, [tuple(number_text(row[key]) for key in header) for row in result.nodes]))
    if result.rewritten:
        tables.append(Table(("rewritten", "as"), [(r.rule.pattern, r.rule.stable) for r in result.rewritten]))
    if seconds is not None:
        tables.append(Table(("phase", "seconds"), [(name, f"{s:.6f}") for name, s in seconds.items()]))
    return tables


def _wirtinger_tables(result: session.Result, certified: Mapping[str, Any]) -> list[Table]:
    """The table of the derivatives by complex inputs and their conjugates, if they were requested."""
    if not result.wirtinger:
        return []
    table = Table(("by", "derivative"), _by_conjugates(result.wirtinger))
    if certified:
        pairs = certified["wirtinger"].values()
        counts = (count for pair in pairs for count in (pair or {"": None, " ": None}).values())
        table = _with_column(table, "certified", map(_count, counts))
    return [table]


def _by_conjugates(found: Mapping[str, Mapping[str, Any] | None]) -> list[tuple[str, ...]]:
    """Two rows for each complex input: its derivative, and that by its conjugate."""
    return [
        (label, number_text(pair and pair[part]))
        for name, pair in found.items()
        for label, part in ((name, "by"), (f"conj({name})", "by_conjugate"))
    ]


def _entries(result: session.Result) -> list[tuple[str, ...]]:
    """The entries of all sparse matrices; the middle of a long matrix is left out."""
    rows: list[tuple[str, ...]] = []
    for name, matrix in (result.coordinates or {}).items():
        if matrix is None:
            rows.append((name, "-", "-", "-"))
            continue
        numbers = range(len(matrix.value))
        shown = numbers if len(numbers) <= _MOST_ENTRIES else (*numbers[:3], None, *numbers[-3:])
        for k in shown:
            texts = ("...",) * 3 if k is None else (str(matrix.row[k]), str(matrix.column[k]), str(matrix.value[k]))
            rows.append((name, *texts))
    return rows


def _with_digits(table: Table, left: Mapping[str, int]) -> Table:
    """A table of derivatives with a column for the correct digits of those that lost more than half of them."""
    return _with_column(table, "digits", (str(left.get(row[0], "")) for row in table.rows))


def _with_column(table: Table, head: str, cells: Iterable[str]) -> Table:
    return Table((*table.header, head), [(*row, cell) for row, cell in zip(table.rows, cells)])


def _count(digits: int | None) -> str:
    return "-" if digits is None else str(digits)


def _rows(part: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(name, number_text(array)) for name, array in part.items()]


def sparse_matrices(result: session.Result) -> list[tuple[str, Any]]:
    """The sparse matrices of a result by name."""
    return [(name, matrix) for name, matrix in (result.coordinates or {}).items() if matrix is not None]
