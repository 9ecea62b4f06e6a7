"""The plan of a table: which columns give values to which names, and which results become columns.

Everything is determined, and every conflict found, before the first row is read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, closest_word
from gradcli.kinds.jets import check_order
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_uncertainties import KEY, PREFIX

# The prefix of a column name in place of a value.
COLUMN = "column:"
# The result key of the value; the keys of derivatives are names joined with commas.
VALUE = ""
# Steps that are charged for each result column.
_RESULT = 16
# The names of columns in a table without a header.
_NUMBERED = re.compile(r"c\d+")
# A number, which is unlikely to be a column name.
_NUMBER = re.compile(r"[-+]?(0[xX][\da-fA-F]+|\d*[.,]?\d+([eE][-+]?\d+)?)")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class RowRequest(NamedTuple):
    """The computation for each row, independently of the table, as plain data that can be sent and stored.

    `columns` maps names to columns with other names; `shared` are values that all rows share, numbers and arrays. `wrt`
    is None for all names, `order` is 0 for the value alone, and `keep` is None for all columns of the table. With
    `propagate`, the uncertainty of the value is computed from those of the inputs, `u_x` for `x`.
    """

    program: str = ""
    program_column: str | None = None
    columns: Mapping[str, str] = _NOTHING
    shared: Mapping[str, Any] = _NOTHING
    wrt: tuple[str, ...] | None = None
    const: tuple[str, ...] = ()
    order: int = 1
    dtype: str = "float64"
    value: str = "value"
    prefix: str = ""
    keep: tuple[str, ...] | None = None
    propagate: bool = False
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS

    def as_json(self) -> dict[str, Any]:
        """The same as data for `json`, with arrays as nested lists."""
        return self._asdict() | {"columns": dict(self.columns), "shared": plain(self.shared)}

    @classmethod
    def of_json(cls, written: Mapping[str, Any]) -> RowRequest:
        """The inverse of `as_json`."""
        shared = of_plain(written["shared"], written["dtype"])
        lists = {key: None if written[key] is None else tuple(written[key]) for key in ("wrt", "const", "keep")}
        return cls(**{**written, **lists, "shared": shared})


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as data for `json`: arrays as nested lists of numbers, complex ones by their real and imaginary parts."""
    return {name: _plain(arrays.on_host(value)) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if arrays.is_complex(value):
        return {"re": _plain(value.real), "im": _plain(value.imag)}
    return value.tolist() if hasattr(value, "tolist") else value


def of_plain(values: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """The inverse of `plain`: values as arrays of a dtype, or of the complex dtype of its precision."""
    return {name: _of_plain(value, dtype) for name, value in values.items()}


def _of_plain(value: Any, dtype: str) -> Any:
    np = arrays.numpy_namespace()
    if isinstance(value, Mapping):
        return np.complex(_of_plain(value["re"], dtype), _of_plain(value["im"], dtype))
    return np.asarray(value, dtype)


class Plan(NamedTuple):
    """The computation for one table.

    `columns` maps names to the columns that give them values; `needed` are the columns to read as numbers, `texts`
    those of programs, and `kept` those to write, None for all. `wrt` are the names to differentiate by, `results` maps
    keys to result columns, and `uncertain` are the names with uncertainties.
    """

    asked: RowRequest
    program: Module | None
    columns: Mapping[str, str]
    needed: tuple[str, ...]
    texts: tuple[str, ...]
    kept: tuple[str, ...] | None
    wrt: tuple[str, ...]
    results: Mapping[str, str]
    uncertain: tuple[str, ...] = ()


def make_plan(asked: RowRequest, table: Sequence[str] | None) -> Plan:
    """The plan for a table with these columns, or for one that may have any columns where `table` is None.

    Raises BindingError for a name without a value or with two, for a name to differentiate by that is not read, and for
    results with the name of a column; ProgramSyntaxError for an invalid program, LimitError for too many results.
    """
    with limits.within(asked.max_steps, asked.max_elements):
        program = None if asked.program_column is not None else parse_charged(asked.program)
    texts = () if asked.program_column is None else (_found(asked.program_column, table),)
    columns = _columns_of_any(asked, table) if program is None else _columns(program, asked, table)
    bound = [*columns, *_shared_names(program, asked)]
    uncertain: tuple[str, ...] = ()
    if asked.propagate:
        columns |= _uncertainties(columns, asked, table)
        uncertain = tuple(name for name in bound if PREFIX + name in columns or PREFIX + name in asked.shared)
        _check_uncertain(uncertain, bound)
    needed = tuple(dict.fromkeys(columns.values()))
    _check_once([*needed, *texts], table or ())
    kept = None if asked.keep is None else tuple(_found(name, table) for name in asked.keep)
    wrt = leaves(bound, asked)
    results = _results(asked, wrt)
    _check_clashes(results, (table or ()) if kept is None else kept)
    return Plan(asked, program, columns, needed, texts, kept, wrt, results, uncertain)


def _uncertainties(columns: Collection[str], asked: RowRequest, table: Collection[str] | None) -> dict[str, str]:
    """The columns of the uncertainties of names that have a column or a shared value."""
    found = {}
    for name in (*columns, *asked.shared):
        u = PREFIX + name
        if u in asked.columns:
            found[u] = _found(asked.columns[u], table)
        elif u in asked.shared:
            if u in (table or ()):
                raise _both(u)
            if not bool((asked.shared[u] >= 0).all() if arrays.shape(asked.shared[u]) else asked.shared[u] >= 0):
                raise BindingError(f"'{u}' is an uncertainty, which is not negative", hint=f"write {u}=0.1")
        elif u in table if table is not None else name in columns:
            found[u] = u
    return found


def _check_uncertain(uncertain: Sequence[str], bound: Sequence[str]) -> None:
    if uncertain:
        return
    name = bound[0] if bound else "x"
    raise BindingError(
        "--propagate finds no uncertainty of an input",
        hint=f"that of '{name}' is the column '{PREFIX}{name}', or {PREFIX}{name}=0.1 for all rows",
    )


def _columns(program: Module, asked: RowRequest, table: Collection[str] | None) -> dict[str, str]:
    """The columns of the names that the program reads, in its order."""
    reads = scope.free_names(program)
    check_dots(program, table or (), program.source)
    scope.check_names(program, [*asked.columns, *asked.shared, *(table or ())])
    given = {*asked.columns, *asked.shared, *(table or ())}
    for name in (*asked.columns, *asked.shared):
        of_uncertainty = asked.propagate and name.removeprefix(PREFIX) in reads
        if name not in reads and not of_uncertainty:
            raise scope.unread_name(name, reads, given, program)
    columns = {}
    for name, first in reads.items():
        if name in asked.columns:
            columns[name] = _found(asked.columns[name], table)
        elif name in asked.shared:
            if name in (table or ()):
                raise _both(name)
        elif name in scope.TYPES:
            continue
        elif name in table if table is not None else name not in scope.CONSTANTS:
            columns[name] = name
        elif not first.maybe_assigned and name not in scope.CONSTANTS:
            raise _no_value(name, first, program, table or ())
    return columns


def _columns_of_any(asked: RowRequest, table: Sequence[str] | None) -> dict[str, str]:
    """The columns of the names that programs of a program column may read."""
    table = table or ()
    for name in asked.shared:
        if name in table:
            raise _both(name)
    own = {
        name: name for name in table if name.isidentifier() and name != asked.program_column and table.count(name) == 1
    }
    return own | {name: _found(column, table or None) for name, column in asked.columns.items()}


def _shared_names(program: Module | None, asked: RowRequest) -> list[str]:
    """The names of shared values, in the order of the program."""
    return [*asked.shared] if program is None else [name for name in scope.free_names(program) if name in asked.shared]


def _found(column: str, table: Collection[str] | None) -> str:
    """The column, where the table has it. Raises BindingError where it does not."""
    if table is None or column in table:
        return column
    close = nearest_column(column, table)
    hint = f"did you mean '{close}'?" if close else _listed(table)
    raise BindingError(f"the table has no column '{column}'", hint=hint)


def _listed(table: Collection[str]) -> str:
    return f"its columns are {', '.join(table)}" if table else "it has no columns"


def _no_value(name: str, first: scope.Read, program: Module, table: Collection[str]) -> BindingError:
    """The error for a name that the program reads and that has no value."""
    others = f"give it a value, as in {name}=1, or a column, as in {name}=column:NAME; {_listed(table)}"
    if has_numbers_for_names(table):
        said: str | None = (
            "its first line holds numbers, and no names: --no-header calls its columns c1, c2 and so on"
            + ("" if _NUMBERED.fullmatch(name) else f", and {name}=column:c1 takes one")
        )
    else:
        said = hint_of_column(name, table, others)
    return BindingError(f"the table has no column '{name}'", hint=said, span=first.span, source=program.source)


def has_numbers_for_names(columns: Collection[str]) -> bool:
    """Return whether the first line of a table seems to be a row and not a header."""
    return bool(columns) and all(map(_NUMBER.fullmatch, columns))


def _both(name: str) -> BindingError:
    return BindingError(
        f"'{name}' is given a value and is a column of the table",
        hint=f"leave out {name}=…, or call it another name in the program",
    )


def _check_once(needed: Sequence[str], table: Sequence[str]) -> None:
    counts = Counter(table)
    for column in needed:
        if counts[column] > 1:
            raise BindingError(
                f"the table has {counts[column]} columns '{column}'", hint="give the columns different names"
            )


def leaves(bound: Sequence[str], asked: RowRequest) -> tuple[str, ...]:
    """The names to differentiate by."""
    if not asked.order:
        return ()
    return scope.chosen_leaves(bound, asked.wrt, asked.const)


def _results(asked: RowRequest, wrt: Sequence[str]) -> dict[str, str]:
    """The result columns by key: the value, then the derivatives of each order."""
    check_order(asked.order)
    with limits.within(asked.max_steps, asked.max_elements):
        limits.charge_steps(_RESULT * limits.UNITS_PER_STEP * math.comb(len(wrt) + asked.order, asked.order))
    names = {VALUE: f"{asked.prefix}{asked.value}"}
    if asked.propagate:
        # Named as the uncertainties of inputs are, unless the value has no name of its own.
        names[KEY] = f"{asked.prefix}u" if asked.value == RowRequest().value else f"{asked.prefix}{PREFIX}{asked.value}"
    for order in range(1, asked.order + 1):
        for by in combinations_with_replacement(wrt, order):
            names[",".join(by)] = f"{asked.prefix}d{'' if order == 1 else order}_{'_'.join(by)}"
    return names


def _check_clashes(results: Mapping[str, str], kept: Collection[str]) -> None:
    seen = set(kept)
    for name in results.values():
        if name in seen:
            what = "a column of the table" if name in kept else "another result"
            raise BindingError(
                f"the result '{name}' is called as {what} is",
                hint="--value and --prefix give results other names, --keep and --only leave columns of the table out",
            )
        seen.add(name)


def nearest_column(name: str, columns: Collection[str]) -> str | None:
    """The column with the name closest to `name`, ignoring case first; None where none is close."""
    return next((column for column in columns if column.lower() == name.lower()), None) or closest_word(name, columns)


def hint_of_column(name: str, columns: Collection[str], otherwise: str | None) -> str | None:
    """A hint how to read the column with the closest name; `otherwise` where none is close."""
    close = nearest_column(name, columns)
    if close is None:
        return otherwise
    asked = f"{name}='column:{close}'"
    return f"did you mean '{close}'? write " + (f"it so, or {asked}" if close.isidentifier() else asked)


def check_dots(program: tree.Module, columns: Collection[str], source: str) -> None:
    """Raise BindingError for a program that contains a column name with a dot, such as `Solar.R`."""
    dotted = {column for column in columns if "." in column}
    if not dotted:
        return
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Attribute) and (title := source[node.span.start : node.span.end]) in dotted:
            name = title.replace(".", "_")
            raise BindingError(
                f"'{title}' is a column, and no name of a program: it has a dot",
                hint=f"write {name} for it, and {name}='column:{title}' beside the program",
                span=node.span,
                source=source,
            )
