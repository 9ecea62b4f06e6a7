"""Differentiates a recorded program to high orders, as programs, by Taylor series in one input after the other.

For n operations, a series takes about n*order**2 operations, and repeated reverse mode about n*3**order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.executors import stepwise
from gradcli.kinds.jets import Jet
from gradcli.program.ir import Program
from gradcli.program.passes import optimise, split_outputs
from gradcli.program.record import record


class Partial(NamedTuple):
    """A derivative as a program with one output, and its value at recording."""

    program: Program
    value: Any


def partials(program: Program, point: Mapping[str, Any], names: Sequence[str], order: int) -> Iterator[Partial]:
    """Yield every derivative of `order` of a program with one output, by the scalar inputs `names`, each mixed one
    once.

    The order is that of `itertools.combinations_with_replacement`. `point` has the values of the inputs at recording.
    Raises NotImplementedError where an operation has no series or is not smooth everywhere, and LimitError for orders
    above 170.
    """
    # A series depends on the side of a kink that its point is on, while the rules of reverse mode cover both sides.
    if any(e.primitive.selects or e.primitive.smooth is not None for e in program.equations):
        raise NotImplementedError
    name, *others = names
    found = _SeriesProgram(program, point, name, order)
    yield found.derivative(order)
    for n in range(order - 1, -1, -1) if others else ():
        yield from partials(found.derivative(n).program, point, others, order - n)


class _SeriesProgram:
    """The derivatives by one input up to an order."""

    def __init__(self, program: Program, point: Mapping[str, Any], name: str, order: int) -> None:
        def run(**given: Any) -> Sequence[Any]:
            given[name] = Jet([given[name], 1.0], order).followed()
            (value,) = stepwise.run(program._replace(guards=()), [*given.values()]) or (None,)
            return value.derivatives() if isinstance(value, Jet) else [value, *[0.0] * order]

        traced = record(run, point)
        self._program = optimise(traced.program)
        self._values = traced.values

    def derivative(self, n: int) -> Partial:
        (found,) = split_outputs(self._program._replace(outputs=(self._program.outputs[n],)))
        return Partial(found, self._values[n])
