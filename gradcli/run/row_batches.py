"""A path through a program, computed for several rows at a time by the batching rules of its primitives."""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.kinds.batch import Batched, new_nesting, unbatched
from gradcli.primitives import linear
from gradcli.primitives.bind import bind
from gradcli.primitives.comparisons import logical_and
from gradcli.primitives.reductions import all_
from gradcli.program.ir import Atom, Program, Variable
from gradcli.run import converted


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
    """The values of `atoms`, of a program of one row, for each of `size` rows, `joined` whether all are true: one operation
    after the other. Of the inputs that are `given`, `columns` have a number or an array for each row."""
    nesting = new_nesting()
    known = {
        v: Batched(given[v.name], nesting) if v.name in columns else given[v.name]
        for v in program.inputs
        if v.name is not None
    }

    def value(atom: Atom) -> Any:
        if isinstance(atom, Variable):
            return known[atom]
        return atom if namespace is None else converted.beside(atom, namespace)

    for equation in program.equations:
        operands = [value(a) for a in equation.inputs]
        if equation.primitive is linear.matmul and any(isinstance(o, Batched) for o in operands):
            # One product of all rows with a matrix that they share would round by where in it a row stands.
            operands = [Batched(unbatched(o, nesting, size), nesting) for o in operands]
        known[equation.output] = bind(equation.primitive, operands, equation.params)
    found = [value(a) for a in atoms]
    if joined:
        found = [functools.reduce(logical_and, (all_(f) if arrays.shape(f) else f for f in found))]
    return [unbatched(f, nesting, size) for f in found]
