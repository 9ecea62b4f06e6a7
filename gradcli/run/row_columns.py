"""A path through a program, run for whole columns of another library than NumPy."""

from __future__ import annotations

from collections.abc import Container, Sequence
from threading import Lock
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError
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
        # None for what was not worth it so far, `_refused` for what cannot be compiled.
        self._compiled: dict[Any, Executable | None] = {}
        self._lock = Lock()

    def run(self, rows: Rows, *, guards: bool) -> list[Any] | None:
        """What it gives for all rows, for `guards` whether they hold for each; None where it fails."""
        atoms = self._program.guards if guards else self._program.outputs
        key = rows.namespace, rows.count, guards
        compiled = self._executable(key, rows, atoms)
        steps, elements = self._limits
        try:
            with limits.within(steps, elements * rows.count), arrays.using_namespace(rows.namespace), arrays.quiet():
                found = None if compiled is None else self._by_library(key, compiled, rows)
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

    def _by_library(self, key: Any, compiled: Executable, rows: Rows) -> list[Any] | None:
        """The same by a program that the library compiles; None where it is not good for these rows."""
        try:
            found = compiled([rows.inputs[v.name] for v in self._program.inputs if v.name is not None])
        except BackendError:
            # A compiler that fails once is not asked again.
            self._keep(key, _refused)
            return None
        except GradcliError:
            # There may be room for one operation after the other.
            return None
        return None if found is None else [*found]

    def _executable(self, key: Any, rows: Rows, atoms: Sequence[Atom]) -> Executable | None:
        """The program for so many rows, which is compiled when there are as many again; None where there is none."""
        backend = backends.of_namespace(rows.namespace)
        with self._lock:
            known, seen = self._compiled.get(key), key in self._compiled
        if backend is None or known is not None:
            return known
        if not seen or self._largest * rows.count < backend.worth_on(rows.namespace).again:
            return self._keep(key, None)
        try:
            return self._keep(key, executable(self._recorded(rows, atoms, guards=key[-1]), rows.namespace))
        except GradcliError:
            return self._keep(key, _refused)

    def _keep(self, key: Any, run: Executable | None) -> Executable | None:
        with self._lock:
            if len(self._compiled) >= _MOST_KEPT and key not in self._compiled:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[key] = run
        return run

    def _recorded(self, rows: Rows, atoms: Sequence[Atom], *, guards: bool) -> Program:
        def run(**given: Any) -> list[Any]:
            return computed(self._program, atoms, given, self._columns, rows.count, joined=guards)

        examples = {n: Abstract(arrays.shape(a), arrays.dtype_name(a)) for n, a in rows.inputs.items()}
        with limits.within(), arrays.using_namespace(None):
            return optimise(record(run, examples).program)


def _refused(_inputs: Sequence[Any]) -> None:
    """In the place of a program that cannot be compiled."""
