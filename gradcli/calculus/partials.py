"""Derivatives of high order of a recorded program, as programs: by series in one input after the other.

The series of a function of n operations have some n*order**2 operations; by repeated reverse mode they are some
n*3**order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.executors import stepwise
from gradcli.kinds.taylor import Jet
from gradcli.program.ir import Program
from gradcli.program.passes import optimise, separated
from gradcli.program.record import record


class Partial(NamedTuple):
    """A derivative as a program of one output, and its value where it was recorded."""

    program: Program
    value: Any


def partials(program: Program, point: Mapping[str, Any], names: Sequence[str], order: int) -> Iterator[Partial]:
    """Every derivative of `order` of a program of one output by the numbers `names`, each mixed one once, as
    `itertools.combinations_with_replacement` has them.

    `point` has the values of the program's inputs for which they are recorded. Raises NotImplementedError where
    something in the program has no series, or is not smooth everywhere, LimitError past order 170.
    """
    # A series has in it which side of a kink its point is on; the rules of reverse mode write down both sides.
    if any(e.primitive.selects or e.primitive.smooth is not None for e in program.equations):
        raise NotImplementedError
    name, *others = names
    found = _Series(program, point, name, order)
    yield found.derivative(order)
    for n in range(order - 1, -1, -1) if others else ():
        yield from partials(found.derivative(n).program, point, others, order - n)


class _Series:
    """The derivatives by one name up to an order."""

    def __init__(self, program: Program, point: Mapping[str, Any], name: str, order: int) -> None:
        def run(**given: Any) -> Sequence[Any]:
            given[name] = Jet([given[name], 1.0], order).followed()
            (value,) = stepwise.run(program._replace(guards=()), [*given.values()]) or (None,)
            return value.derivatives() if isinstance(value, Jet) else [value, *[0.0] * order]

        traced = record(run, point)
        self._program = optimise(traced.program)
        self._values = traced.values

    def derivative(self, n: int) -> Partial:
        (found,) = separated(self._program._replace(outputs=(self._program.outputs[n],)))
        return Partial(found, self._values[n])
