"""Evaluates a recorded program for several rows at once by batching rules."""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.evaluation import python_values
from gradcli.kinds.batch import Batched, new_batch_id, unbatched
from gradcli.primitives.bind import bind
from gradcli.primitives.entries import linear
from gradcli.primitives.entries.comparisons import logical_and
from gradcli.primitives.entries.reductions import all_
from gradcli.program.ir import Atom, Program, Variable


def computed(
    program: Program,
    atoms: Sequence[Atom],
    given: Mapping[str, Any],
    columns: Container[str],
    size: int,
    *,
    joined: bool,
    namespace: arrays.Namespace | None = None,
) -> list[Any]:
    """Evaluate `atoms` of a single-row program for `size` rows, equation by equation.

    `given` has the inputs by name; those in `columns` have a leading axis of rows. With `joined`, return a single
    boolean for each row: whether all atoms are true.
    """
    nesting = new_batch_id()
    known = {
        v: Batched(given[v.name], nesting) if v.name in columns else given[v.name]
        for v in program.inputs
        if v.name is not None
    }

    def value(atom: Atom) -> Any:
        if isinstance(atom, Variable):
            return known[atom]
        return atom if namespace is None else python_values.in_namespace(atom, namespace)

    for equation in program.equations:
        operands = [value(a) for a in equation.inputs]
        if equation.primitive is linear.matmul and any(isinstance(o, Batched) for o in operands):
            # A single product of all rows with a shared matrix would round differently depending on the position of a
            # row.
            operands = [Batched(unbatched(o, nesting, size), nesting) for o in operands]
        known[equation.output] = bind(equation.primitive, operands, equation.params)
    found = [value(a) for a in atoms]
    if joined:
        found = [functools.reduce(logical_and, (all_(f) if arrays.shape(f) else f for f in found))]
    return [unbatched(f, nesting, size) for f in found]
