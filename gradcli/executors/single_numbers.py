"""Run a program of scalars in ball arithmetic, by functions of numbers without arrays around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, exact
from gradcli.errors import NotRecordableError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import exact_forward
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Executable, Program, Variable


class _ScalarStep(NamedTuple):
    """A call of a function: the slots of its operands, and the slot of its result."""

    function: Callable[..., Any]
    params: Mapping[str, Any]
    operands: tuple[int, ...]
    result: int


def executable(program: Program, namespace: Any) -> Executable:
    """A function from 0-d balls to 0-d balls, at the precision at which `program` was recorded.

    Raises NotRecordableError if the program has tensors. The function raises what functions of numbers raise.
    """
    if any(v.shape for v in (*program.inputs, *(e.output for e in program.equations))):
        raise NotRecordableError("programs of tensors are computed operation by operation in balls")
    numbers: list[Any] = [None] * len(program.inputs)
    places: dict[Any, int] = {variable: place for place, variable in enumerate(program.inputs)}

    def place_of(atom: Atom) -> int:
        if isinstance(atom, Variable):
            return places[atom]
        numbers.append(_number(atom))
        return len(numbers) - 1

    steps = []
    for equation in program.equations:
        function = _of_numbers(equation.primitive, namespace)
        operands = tuple(map(place_of, equation.inputs))
        places[equation.output] = len(numbers)
        numbers.append(None)
        steps.append(_ScalarStep(function, equation.params, operands, places[equation.output]))
    outputs, guards = [*map(place_of, program.outputs)], [*map(place_of, program.guards)]
    eighths = sum(namespace.scalars.eighths(e.primitive.name, e.primitive.time) for e in program.equations)

    def run(inputs: Sequence[Any]) -> Sequence[Any] | None:
        limits.charge_steps(eighths)
        found = numbers.copy()
        found[: len(inputs)] = map(_number, inputs)
        for function, params, operands, result in steps:
            found[result] = function(*[found[place] for place in operands], **params)
        if not all(found[place] for place in guards):
            return None
        return [_array(found[place]) for place in outputs]

    return run


def _number(array: Any) -> Any:
    """The number of a 0-d array, or a truth value."""
    if type(array) is Balls:
        return array.numbers
    return array if type(array) is bool else exact(array)


def _array(number: Any) -> Any:
    return number if type(number) is bool else Balls(number)


def _of_numbers(primitive: Primitive, namespace: Any) -> Callable[..., Any]:
    """A primitive as a function of numbers."""
    found: Callable[..., Any] | None = namespace.of_numbers(primitive.function or primitive.name)
    if found is not None:
        return found
    forward = exact_forward(namespace, primitive)

    def by_arrays(*numbers: Any, **params: Any) -> Any:
        operands = namespace.promoted([*map(_array, numbers)], truths=primitive.truths)
        return _number(namespace.tidy(forward(*operands, **params)))

    return by_arrays
