"""Evaluates a recorded program for all rows at once on arrays of libraries other than NumPy."""

from __future__ import annotations

from collections.abc import Container, Sequence
from threading import Lock
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError
from gradcli.evaluation.bounded_cache import BoundedCache
from gradcli.executors.executor_choice import executable
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Executable, Program
from gradcli.program.passes import optimise
from gradcli.program.record import record
from gradcli.rows.row_batches import computed
from gradcli.rows.row_inputs import Rows

# Bound on the number of compiled programs; each is for one number of rows.
_MOST_KEPT = 8


class ColumnProgram:
    """A single-row program whose inputs in `columns` have a value for each row.

    It runs equation by equation, or compiled by the library of the columns where that pays.
    """

    def __init__(self, program: Program, columns: Container[str], most: tuple[int, int]) -> None:
        self._program = program
        self._columns = columns
        self._limits = most
        self._largest = max((arrays.size(e.output) for e in program.equations), default=1)
        # By key: the compiled program; None where it has not paid so far, `_refused` where it cannot be compiled.
        self._compiled: BoundedCache[Any, Executable | None] = BoundedCache(_MOST_KEPT)
        self._lock = Lock()

    def run(self, rows: Rows, *, guards: bool) -> list[Any] | None:
        """Return the outputs for all rows, or with `guards` whether all guards hold for each row; None on failure."""
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
        """Run the compiled program; None where it fails or refuses these rows."""
        try:
            found = compiled([rows.inputs[v.name] for v in self._program.inputs if v.name is not None])
        except BackendError:
            # A failed compiler is not tried again.
            self._keep(key, _refused)
            return None
        except GradcliError:
            # For example, memory may suffice for running one operation at a time.
            return None
        return None if found is None else [*found]

    def _executable(self, key: Any, rows: Rows, atoms: Sequence[Atom]) -> Executable | None:
        """Return the compiled program for this number of rows; None where there is none.

        It is compiled at the second call with the same number of rows.
        """
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
            self._compiled[key] = run
        return run

    def _recorded(self, rows: Rows, atoms: Sequence[Atom], *, guards: bool) -> Program:
        def run(**given: Any) -> list[Any]:
            return computed(self._program, atoms, given, self._columns, rows.count, joined=guards)

        examples = {n: Abstract(arrays.shape(a), arrays.dtype_name(a)) for n, a in rows.inputs.items()}
        with limits.within(), arrays.using_namespace(None):
            return optimise(record(run, examples).program)


def _refused(_inputs: Sequence[Any]) -> None:
    """Stands for a program that cannot be compiled."""
