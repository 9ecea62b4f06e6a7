"""A path through a program, run for whole columns of another library than NumPy."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError, NotRecordableError
from gradcli.executors.choose import executable
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Executable, Program
from gradcli.program.passes import optimise
from gradcli.program.record import record
from gradcli.run.row_batches import computed
from gradcli.run.row_inputs import Rows

# So many programs are kept: each is for one number of rows.
_MOST_KEPT = 8


class WholeColumns:
    """A program of one row, of whose inputs `columns` have one for each: operation by operation, and compiled by the
    library of the columns where that pays."""

    def __init__(self, program: Program, columns: Container[str], most: tuple[int, int]) -> None:
        self._program = program
        self._columns = columns
        self._limits = most
        self._largest = max((arrays.size(e.output) for e in program.equations), default=1)
        # None for what was run once.
        self._compiled: dict[Any, Executable | None] = {}

    def run(self, rows: Rows, *, guards: bool) -> list[Any] | None:
        """What it gives for all rows, for `guards` whether they hold for each; None where it fails."""
        atoms = self._program.guards if guards else self._program.outputs
        steps, elements = self._limits
        try:
            with limits.within(steps, elements * rows.count), arrays.using_namespace(rows.namespace), arrays.quiet():
                found = self._by_library(rows, atoms, guards=guards)
                return found or computed(
                    self._program,
                    atoms,
                    rows.inputs,
                    self._columns,
                    rows.count,
                    joined=guards,
                    namespace=rows.namespace,
                )
        except (GradcliError, MemoryError):
            return None

    def _by_library(self, rows: Rows, atoms: Sequence[Atom], *, guards: bool) -> list[Any] | None:
        """The same by a program that the library compiles; None where there is none, or it is not good for these rows."""
        run = self._executable(rows, atoms, guards=guards)
        if run is None:
            return None
        try:
            found = run([rows.inputs[v.name] for v in self._program.inputs if v.name is not None])
        except BackendError:
            return None
        return None if found is None else [*found]

    def _executable(self, rows: Rows, atoms: Sequence[Atom], *, guards: bool) -> Executable | None:
        backend = backends.of_namespace(rows.namespace)
        key = rows.namespace, rows.count, guards
        if backend is None or self._compiled.get(key) is not None:
            return self._compiled.get(key)
        worth = backend.worth_on(rows.namespace)
        if self._largest * rows.count < (worth.again if key in self._compiled else worth.first):
            return self._keep(key, None)
        try:
            return self._keep(key, executable(self._recorded(rows, atoms, guards=guards), rows.namespace))
        except (NotRecordableError, BackendError):
            return self._keep(key, _refused)

    def _keep(self, key: Any, run: Executable | None) -> Executable | None:
        if len(self._compiled) >= _MOST_KEPT and key not in self._compiled:
            self._compiled.pop(next(iter(self._compiled)))
        self._compiled[key] = run
        return run

    def _recorded(self, rows: Rows, atoms: Sequence[Atom], *, guards: bool) -> Program:
        def run(**given: Any) -> list[Any]:
            return computed(self._program, atoms, given, self._columns, rows.count, joined=guards)

        examples = {n: Abstract(arrays.shape(a), arrays.dtype_name(a)) for n, a in rows.inputs.items()}
        with arrays.using_namespace(None):
            return optimise(record(run, examples).program)


def _refused(_inputs: Sequence[Any]) -> None:
    """In the place of a program that cannot be compiled."""
