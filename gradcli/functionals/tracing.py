"""Traces a function of bound variables as the body of a functional; what it reads from outside becomes an operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, NotRecordableError
from gradcli.functionals.body import Body
from gradcli.kinds.branch_points import watching
from gradcli.loops.body_tracing import Trace, Traced, TracedPath
from gradcli.loops.rolled_loop import BodyPath, joined
from gradcli.loops.rolling import traced_paths
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import reshaped
from gradcli.primitives.entries.indexing import index
from gradcli.program.ir import Atom, Program, Variable
from gradcli.program.passes import needed_variables, optimise
from gradcli.program.scalarisation import TensorsNeededError, by_element


class TracedFunction(NamedTuple):
    """A function as a body, the numbers from outside that it reads, and the shapes of its results."""

    body: Body
    reads: Sequence[Any]
    shapes: Sequence[Shape]


class _ShapeTrace(Trace):
    """A trace whose examples are nan, so that what is recorded holds for all numbers."""

    def atom(self, value: Any) -> Atom:
        """An array of one number is a number of the program."""
        plain = not isinstance(value, Kind) and type(value) not in arrays.PYTHON_NUMBERS and not arrays.shape(value)
        return super().atom(
            float(value) if plain and arrays.dtype_name(value) == "float64" and not is_exact() else value
        )

    def example(self, value: Any) -> Any:
        if isinstance(value, Traced) and value.trace is self:
            return value.example
        return _nan(value.shape) if isinstance(value, Kind) else value


def traced(function: Callable[..., Any], shapes: Sequence[Shape]) -> TracedFunction:
    """A function of bound variables of these shapes, which returns one value or a list of values.

    Raises EvaluationError where the function cannot be a program of scalars, or takes a path that depends on more than
    the numbers that it is given.
    """
    trace = _ShapeTrace()
    bound = [trace.input(_nan(s)) for s in shapes]

    def run() -> list[Any]:
        found = function(*bound)
        return [*found] if isinstance(found, (list, tuple)) else [found]

    try:
        with watching(None):
            paths = traced_paths(trace, run)
        return _described(trace, bound, paths)
    except (NotRecordableError, TensorsNeededError) as error:
        raise EvaluationError(f"the function cannot be recorded: {str(error) or 'it computes with tensors'}") from None


def _nan(shape: Shape) -> Any:
    return arrays.numpy_namespace().full(shape, math.nan) if shape else math.nan


def _described(trace: Trace, bound: Sequence[Traced], paths: Sequence[TracedPath]) -> TracedFunction:
    shapes = [arrays.shape(o) for o in paths[0].outputs]
    if any([arrays.shape(o) for o in path.outputs] != shapes for path in paths):
        raise NotRecordableError("its shape depends on numbers")
    if any(arrays.is_complex(o) for path in paths for o in path.outputs):
        raise EvaluationError(
            "the function has complex values, and real ones are needed here",
            hint="take its real and imaginary parts, each by itself",
        )
    always = tuple(b.variable for b in bound)
    used = {v for path in paths for v in needed_variables(path.equations, (*path.outputs, *path.conditions))}
    read = [(value, variable) for value, variable in trace.read.values() if variable in used]
    inputs = (*always, *(variable for _, variable in read))
    body = []
    for path in paths:
        program = optimise(Program(inputs, path.equations, (*path.outputs, *path.conditions)))
        body.append(BodyPath(optimise(by_element(program)), path.holds))
    count = sum(math.prod(s) for s in shapes)
    made = Body(body, joined(body, count), sum(math.prod(v.shape) for v in always))
    return TracedFunction(made, [e for value, variable in read for e in _elements(value, variable)], shapes)


def _elements(value: Any, variable: Variable) -> list[Any]:
    """The elements of a value as numbers, in row-major order."""
    if not variable.shape:
        return [value]
    flat = reshaped(value, (math.prod(variable.shape),))
    return [index(flat, k) for k in range(math.prod(variable.shape))]
