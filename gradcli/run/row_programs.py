"""Programs over the rows of a table: the value and the derivatives of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.errors import BindingError, GradcliError, ShapeError
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.run import converted
from gradcli.run.row_results import Gathered, RowResults
from gradcli.run.single_rows import evaluated, keys

if TYPE_CHECKING:
    from gradcli.run.callables import Computation


class RowProgram:
    """A program, or a function of Python's, that is run for each row by itself.

    `wrt` are the inputs to differentiate by, columns or what all rows share, up to `order`. Each row may take
    `max_steps` steps and compute `max_elements` array elements, as if it were evaluated alone. It may be run by several
    threads at once.
    """

    def __init__(
        self,
        program: Computation,
        wrt: Sequence[str],
        order: int = 1,
        *,
        max_steps: int = MAX_STEPS,
        max_elements: int = MAX_ELEMENTS,
    ) -> None:
        self.program = program
        self.wrt = tuple(wrt)
        self.order = order
        self.keys = keys(self.wrt, order)
        self._limits = max_steps, max_elements

    def run(
        self,
        columns: Mapping[str, Any],
        shared: Mapping[str, Any],
        *,
        rows: int | None = None,
        threads: int | None = None,
    ) -> RowResults:
        """The results for the rows of `columns`, arrays of NumPy of shape `[n, …]`, or of n objects that are arrays
        each; `shared` are inputs that are the same for all of them.

        `rows` is n where there are no columns, and `threads` how many may work at a time, None for one on each core.
        What a row gives depends on nothing but its inputs: neither on the other rows nor on their number.

        Raises ShapeError for columns of different lengths, and BindingError for an input to differentiate by that is
        not there. What evaluating a row raises is among the `failures`.
        """
        count = self._count(columns, rows)
        missing = [n for n in self.wrt if n not in columns and n not in shared]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        given = {name: converted.value(value) for name, value in shared.items()}
        gathered = Gathered(count, self.keys)
        self._one_by_one(columns, given, range(count), gathered)
        return gathered.results()

    def _count(self, columns: Mapping[str, Any], rows: int | None) -> int:
        counts = {name: len(column) for name, column in columns.items()}
        if rows is None and not counts:
            raise ShapeError("there are no rows: no input has one value for each")
        count = rows if rows is not None else next(iter(counts.values()))
        for name, other in counts.items():
            if other != count:
                raise ShapeError(f"'{name}' has {other:,} rows, and others have {count:,}")
        return count

    def _one_by_one(
        self, columns: Mapping[str, Any], shared: Mapping[str, Any], rows: Sequence[int], gathered: Gathered
    ) -> None:
        np = arrays.numpy_namespace()
        for row in rows:
            inputs = {name: arrays.tidy(np.asarray(column[row])) for name, column in columns.items()}
            try:
                value, found, _ = evaluated(self.program, {**inputs, **shared}, self.wrt, self.order, self._limits)
            except GradcliError as error:
                gathered.fail(row, error)
                continue
            gathered.put(
                [row],
                np.asarray(value)[None],
                {key: None if found[key] is None else np.asarray(found[key])[None] for key in self.keys},
            )
