"""Traces a function of bound variables as the body of a functional; what it reads from outside becomes an operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, NotRecordableError
from gradcli.functionals.body import Body
from gradcli.kinds.branch_points import watching
from gradcli.loops.body_tracing import RoundTrace, Traced, TracedPath
from gradcli.loops.rolled_loop import BodyPath, joined
from gradcli.loops.rolling import traced_paths
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import reshaped
from gradcli.primitives.entries.complex_parts import from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.primitives.entries.indexing import index
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import needed_variables, optimise
from gradcli.program.scalarisation import TensorsNeededError, by_element


class TracedFunction(NamedTuple):
    """A function as a body, the numbers from outside that it reads, and the shapes of its results.

    `sources` are the values from outside whose elements and parts the reads are. `holomorphic` says whether the results
    are the parts of a number that is analytic in each of them that is complex, and `holomorphic_on_paths` whether they
    are on each execution path by itself, whatever decides between the paths.
    """

    body: Body
    reads: Sequence[Any]
    shapes: Sequence[Shape]
    sources: Sequence[Any] = ()
    holomorphic: bool = False
    holomorphic_on_paths: bool = False


class _ShapeTrace(RoundTrace):
    """A trace whose examples are nan, so that what is recorded holds for all numbers."""

    def __init__(self, *, computes_all: bool) -> None:
        super().__init__()
        self.computes_all = computes_all

    def atom(self, value: Any) -> Atom:
        """An array of one number is a number of the program."""
        plain = not isinstance(value, Kind) and type(value) not in arrays.PYTHON_NUMBERS and not arrays.shape(value)
        return super().atom(
            float(value) if plain and arrays.dtype_name(value) == "float64" and not is_exact() else value
        )

    def example(self, value: Any) -> Any:
        if isinstance(value, Traced) and value.trace is self:
            return value.example
        if not isinstance(value, Kind):
            return value
        return _nan(value.shape, complex(math.nan, math.nan) if arrays.is_complex(value) else math.nan)


def traced(function: Callable[..., Any], shapes: Sequence[Shape], *, computes_all: bool = False) -> TracedFunction:
    """A function of bound variables of these shapes, which returns one value or a list of values.

    If it `computes_all`, the reads are what the function reads, and not what it computes of them alone, such as both k
    and -k: its derivatives by each alone may be so large that nothing is left of their difference.

    Raises EvaluationError where the function cannot be a program of scalars, or takes a path that depends on more than
    the numbers that it is given.
    """
    trace = _ShapeTrace(computes_all=computes_all)
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


def _nan(shape: Shape, number: complex = math.nan) -> Any:
    return arrays.numpy_namespace().full(shape, number) if shape else number


def _described(trace: RoundTrace, bound: Sequence[Traced], paths: Sequence[TracedPath]) -> TracedFunction:
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
    sources = [(value, variable) for value, variable in trace.read.values() if variable in used]
    read, joining = _in_parts(sources)
    inputs = (*always, *(variable for _, variable in read))
    body = []
    for path in paths:
        program = optimise(Program(inputs, (*joining, *path.equations), (*path.outputs, *path.conditions)))
        body.append(BodyPath(optimise(by_element(program)), path.holds))
    count, first = sum(math.prod(s) for s in shapes), sum(math.prod(v.shape) for v in always)
    elements = [(value, variable.shape, k) for value, variable in read for k in range(math.prod(variable.shape))]
    kept = sorted(set().union(*(_used(path.program, first) for path in body)))
    places = [*range(first), *kept]
    body = [BodyPath(p._replace(inputs=tuple(p.inputs[k] for k in places)), holds) for p, holds in body]
    variables = [variable for _, variable in sources]
    return TracedFunction(
        Body(body, joined(body, count), first),
        [_element(*elements[k - first]) for k in kept],
        shapes,
        [value for value, _ in sources],
        all(_is_holomorphic(path, variables) for path in paths),
        all(_is_holomorphic(_without_conditions(path), variables) for path in paths),
    )


def _without_conditions(path: TracedPath) -> TracedPath:
    """A path with the equations alone that its outputs need."""
    needed = needed_variables(path.equations, path.outputs)
    return path._replace(equations=tuple(e for e in path.equations if e.output in needed))


def _is_holomorphic(path: TracedPath, sources: Sequence[Variable]) -> bool:
    """Return whether the outputs of a path are the real and the imaginary part of a number to which analytic operations
    alone lead from complex sources."""
    dependent = {v for v in sources if v.dtype.startswith("complex")}
    taken: list[tuple[Any, Any]] = []
    for equation in path.equations:
        if dependent.isdisjoint(v for v in equation.inputs if isinstance(v, Variable)):
            continue
        if equation.primitive.numbers == "analytic":
            dependent.add(equation.output)
        elif equation.primitive in (real_part, imaginary_part) and any(o is equation.output for o in path.outputs):
            taken.append((equation.primitive, equation.inputs[0]))
        else:
            return False
    return not taken or ([p for p, _ in taken] == [real_part, imaginary_part] and taken[0][1] is taken[1][1])


def _in_parts(read: Sequence[tuple[Any, Variable]]) -> tuple[list[tuple[Any, Variable]], list[Equation]]:
    """The values that are read, with the real and imaginary part in place of each complex number, as functionals have
    real operands; and the equations that join the parts."""
    found, joining = [], []
    for value, variable in read:
        if not variable.dtype.startswith("complex"):
            found.append((value, variable))
            continue
        dtype = arrays.real_dtype(variable.dtype)
        parts = [Variable(variable.shape, dtype, f"{part} {variable.name}") for part in ("real", "imag")]
        found += zip((real(value), imag(value)), parts)
        joining.append(Equation(from_parts, tuple(parts), {}, variable))
    return found, joining


def _used(program: Program, first: int) -> set[int]:
    """The numbers of the inputs from `first` on that are used."""
    needed = needed_variables(program.equations, program.outputs)
    return {k for k, variable in enumerate(program.inputs) if k >= first and variable in needed}


def _element(value: Any, shape: Shape, number: int) -> Any:
    """An element of a value, counted in row-major order."""
    return index(reshaped(value, (math.prod(shape),)), number) if shape else value
