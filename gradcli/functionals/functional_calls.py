"""Functionals of Python functions: what they are called with, and the primitives that they apply."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.autograd.node import ANALYTIC_IN
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body
from gradcli.functionals.integrals.integral import integral, integral_error
from gradcli.functionals.integrals.moved_ends import by_distances, is_singular_at
from gradcli.functionals.integrals.reciprocal_functions import with_reciprocal_functions
from gradcli.functionals.roots.root_primitives import number_solution, solution
from gradcli.functionals.roots.searches import Search
from gradcli.functionals.sums.series_sum import series_sum
from gradcli.functionals.switches import (
    IntegralPiece,
    by_comparisons,
    by_floor_and_comparisons,
    moved_switches,
    number_of,
    pieces,
    samples,
)
from gradcli.functionals.tracing import TracedFunction, traced
from gradcli.loops.body_tracing import Traced
from gradcli.primitives.bind import Kind, bind, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, add
from gradcli.primitives.entries.complex_parts import from_parts
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real, view_as_complex, view_as_real
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.primitive import Primitive

# The defaults of the tolerances, relative to the value and to the integral of the magnitude.
RTOL, ATOL = 1e-12, 1e-14
# Two ways to compute an integral differ by no more than this, relative to its parts.
_SAME = 1e-9
# The multiple of the tolerance by which they may differ without a report.
_SLACK = 10

# The largest relative tolerance of a differential equation.
_LOOSEST = 0.01

Params = Mapping[str, Any]


def integrate(
    function: Callable[..., Any],
    low: Any,
    high: Any,
    *,
    points: Sequence[float] = (),
    rtol: float = RTOL,
    atol: float = ATOL,
) -> Any:
    """The integral of a function of one variable, in the shape of its value, which may be complex.

    Limits are numbers, which may be infinite. `points` are places to split at. Raises EvaluationError for an integral
    that diverges.
    """
    function, found = _traced_integrand(function)
    if is_exact():
        found = found._replace(body=with_reciprocal_functions(found.body))
    # Between switches that move it is examined whether the limits are singular.
    is_whole = not points and not moved_switches(found.body, jumps=False)
    if is_whole and any(is_singular_at(found.body, *limits, found.reads) for limits in ((low, high), (high, low))):
        exact = _by_distances(found, low, high, rtol, atol)
        if exact is not None:
            return exact
        # An infinite limit, and one that is a batch, is no end of an interval of fixed length.
        if not all(x is not None and math.isfinite(x) for x in map(number_of, (low, high))):
            return _of_each_result(integral, found, low, high, points, rtol, atol)

        # Derivatives by the limit alone, and by what the integrand reads, may be infinite where the whole is not.
        def scaled(u: Traced) -> Any:
            first, last = (u.trace.inside(x) if isinstance(x, Kind) else x for x in (low, high))
            value = function(first + (last - first) * u)
            return [(last - first) * part for part in value] if isinstance(value, list) else (last - first) * value

        whole = _with_switches(traced(scaled, [()], computes_all=True))
        return _of_each_result(integral, whole, 0.0, 1.0, points, rtol, atol)
    return _of_each_result(integral, found, low, high, points, rtol, atol)


def _traced_integrand(function: Callable[..., Any]) -> tuple[Callable[..., Any], TracedFunction]:
    function, found = traced_in_parts(function)
    return function, _with_switches(found)


def _with_switches(function: TracedFunction) -> TracedFunction:
    """A traced function whose switches are found."""
    return function._replace(body=by_floor_and_comparisons(function.body))


def traced_in_parts(
    function: Callable[..., Any], *, computes_all: bool = False
) -> tuple[Callable[..., Any], TracedFunction]:
    """A function of a number, and its trace by `traced`; one with complex values is replaced by one that returns their
    real and imaginary parts."""
    seen = False

    def real_of(t: Any) -> Any:
        nonlocal seen
        value = function(t)
        if isinstance(value, (list, tuple)):
            # The two results of a traced function are the parts of a complex one.
            raise EvaluationError(
                f"the function has {len(value)} values, and one is needed here",
                hint="write them as a list, as in [x, y]",
            )
        if not arrays.is_complex(value):
            return value
        seen = True
        return real(value)

    def parts(t: Any) -> Any:
        value = function(t)
        return [real(value), imag(value)]

    found = traced(real_of, [()], computes_all=computes_all)
    return (parts, traced(parts, [()], computes_all=computes_all)) if seen else (function, found)


def _by_distances(function: TracedFunction, low: Any, high: Any, rtol: float, atol: float) -> Any:
    """The integral with the distance from singular limits as its variable; None where the integrand cannot be written in
    these distances."""
    params = {"points": (), "rtol": rtol, "atol": atol}
    bodies = [function.body.result(k) for k in range(function.body.results)]
    sampled = samples([low, high, *function.reads])
    parts = [by_distances(body, low, high, function.reads, sampled, params) for body in bodies]
    if any(part is None for part in parts):
        return None
    return noted(joined_parts(parts, function.shapes), function, low, high)


def quad(
    function: Callable[..., Any],
    low: Any,
    high: Any,
    *,
    points: Sequence[float] = (),
    rtol: float = RTOL,
    atol: float = ATOL,
) -> tuple[Any, Any]:
    """The integral, as `integrate`, and an estimate of its error; of a complex one, the modulus of the errors of both
    parts."""
    _, found = _traced_integrand(function)
    value, error = (_of_each_result(p, found, low, high, points, rtol, atol) for p in (integral, integral_error))
    return value, absolute(error) if arrays.is_complex(error) else error


def _of_each_result(
    primitive: Primitive,
    function: TracedFunction,
    low: Any,
    high: Any,
    points: Sequence[float],
    rtol: float,
    atol: float,
) -> Any:
    params = {"points": tuple(points), "rtol": rtol, "atol": atol}
    body = function.body
    parts = [_integral(primitive, body.result(k), low, high, function.reads, params) for k in range(body.results)]
    return noted(joined_parts(parts, function.shapes), function, low, high)


def noted(value: Any, function: TracedFunction, *limits: Any) -> Any:
    """`value`; where the function is holomorphic, its node notes that it is analytic in the values that the function
    reads and in the limits."""
    if function.holomorphic and isinstance(value, Tensor) and value.grad_fn is not None:
        value.grad_fn.metadata[ANALYTIC_IN] = [*function.sources, *limits]
    return value


def joined_parts(parts: Sequence[Any], shapes: Sequence[Shape]) -> Any:
    """A value of shape `shapes[0]` with these elements; with two shapes a complex one, of which the first half of them
    are the real parts."""
    if len(shapes) == 2:
        half = len(parts) // 2
        return from_parts(joined_parts(parts[:half], shapes[:1]), joined_parts(parts[half:], shapes[1:]))
    return reshape(stack(parts), shapes[0]) if shapes[0] else parts[0]


def _integral(primitive: Primitive, body: Body, low: Any, high: Any, reads: Sequence[Any], params: Params) -> Any:
    """The integral of a body with one result. If it has switches that move, places where it changes to another formula,
    it is the sum over the parts between them, where that agrees with the integral over the whole."""
    smooth = _pieces(body, low, high, reads) if primitive is integral else None
    if smooth is None:
        return bind(primitive, (low, high, *reads), {"body": body, **params})
    parts = [_piece(p, reads, params) for p in smooth]
    total = functools.reduce(add, parts)
    if is_exact():
        return total
    whole = bind(primitive, tuple(map(constant, (low, high, *reads))), {"body": body, **params})
    size = abs(whole) + sum(abs(constant(part)) for part in parts)
    apart = abs(constant(total) - whole)
    if apart <= _SAME * size:
        if not apart <= _SLACK * max(params["rtol"], params["atol"]) * size:
            # Some switches of many were missed.
            shortfalls.report("integrate", float(apart))
        return total
    # A switch was missed; where derivatives need its place, they are refused.
    return bind(primitive, (low, high, *reads), {"body": body, **params})


def _pieces(body: Body, low: Any, high: Any, reads: Sequence[Any]) -> list[IntegralPiece] | None:
    """The parts of an integral between its switches, which are proved in ball arithmetic; None where no switch matters,
    or the places are unknown."""
    if is_exact():
        # Imported here as few programs are computed in balls.
        from gradcli.functionals.integrals.ball_switches import proved_pieces

        return proved_pieces(body, low, high, reads)
    return pieces(body, low, high, reads)


def _piece(piece: IntegralPiece, reads: Sequence[Any], params: Params) -> Any:
    """The integral between two switches, at which the integrand may be singular."""
    found = None
    if not params["points"]:
        found = by_distances(piece.body, piece.low, piece.high, reads, piece.sampled, params)
    return bind(integral, (piece.low, piece.high, *reads), {"body": piece.body, **params}) if found is None else found


def nsum(function: Callable[..., Any], first: Any, last: Any, *, rtol: float = RTOL, atol: float = ATOL) -> Any:
    """The sum of a function over the whole numbers from `first` to `last`, which may be infinite, in the shape of its
    value, which may be complex.

    Raises EvaluationError for a series that diverges.
    """
    _, found = traced_in_parts(function)
    bodies = [found.body.result(k) for k in range(found.body.results)]
    params = {"rtol": rtol, "atol": atol}
    parts = [bind(series_sum, (first, last, *found.reads), {"body": body, **params}) for body in bodies]
    return noted(joined_parts(parts, found.shapes), found, first, last)


def root(function: Callable[..., Any], start: Any, *, bracket: tuple[float, float] | None = None) -> Any:
    """A root of a function, in the shape of `start`, near which it is searched for.

    The function takes a value of that shape and returns one with as many elements. With a `bracket`, the root of a
    function of a number is between its ends. Raises EvaluationError where no root is found, or the Jacobian is singular
    there.
    """
    found = traced(function, [arrays.shape(start)])
    if found.body.results != found.body.bound:
        raise EvaluationError(
            f"a root needs as many equations as unknowns, and these are {found.body.results} and {found.body.bound}"
        )
    return _solution(found, start, Search(bracket=bracket))


def argmin(function: Callable[..., Any], start: Any, *, sign: float = 1.0) -> Any:
    """The place of a minimum of a function with one number as its value, in the shape of `start`; of a maximum if `sign`
    is -1."""
    found = traced(function, [arrays.shape(start)])
    if found.body.results != 1:
        raise EvaluationError("a minimum is that of a function whose value is a number")
    gradient = found._replace(body=found.body.gradient)
    return _solution(gradient, start, Search(objective=found.body, sign=sign))


def _solution(function: TracedFunction, start: Any, search: Search) -> Any:
    params = {"body": function.body, "search": search}
    shape, start = arrays.shape(start), constant(start)
    if not shape:
        return bind(number_solution, (start, *function.reads), params)
    flat = reshape(start, (math.prod(shape),))
    given = concat([flat, stack(function.reads)]) if function.reads else flat
    return reshape(bind(solution, (given,), params), shape)


def trajectory(
    function: Callable[[Any, Sequence[Any]], Sequence[Any]],
    start: Sequence[Any],
    times: Any,
    *,
    method: str = "auto",
    rtol: float = RTOL,
    atol: float = ATOL,
    breaks: Sequence[float] = (),
    adjoint: bool | None = None,
) -> Any:
    """The solution of y' = function(t, y) with y = start at the first of `times`, of shape [times, states].

    `times` are numbers or a vector, in ascending or descending order. The right side may switch at `breaks`, to which a
    step is made. `method` is "taylor", "radau", or "auto". `adjoint` says whether gradients are computed by adjoint
    equations; by default they are where there are many values to differentiate by. Raises EvaluationError for a solution
    that does not exist up to the last time.
    """
    # Imported here as integrals do not need it.
    from gradcli.functionals.ode.ode_system import initial_value_problem
    from gradcli.functionals.ode.trajectory import trajectory as primitive

    if not (0 < rtol <= _LOOSEST and atol >= 0):
        raise EvaluationError(f"rtol= is a number above 0 and up to {_LOOSEST}, and atol= is 0 or more")
    moments: Any = stack([*times]) if isinstance(times, (list, tuple)) else times
    if len(arrays.shape(moments)) != 1 or not arrays.shape(moments)[0]:
        raise EvaluationError("times are a list with at least the time of the start")
    begin = moments[0]
    first = begin if isinstance(begin, Kind) else _constant_of(begin)
    found = traced(lambda t, *y: [*function(first + t, [*y])], [()] * (1 + len(start)), computes_all=True)
    if len(found.shapes) != len(start) or any(found.shapes):
        raise _count_error(len(found.shapes), len(start))
    system = initial_value_problem(
        by_comparisons(found.body), [None if isinstance(s, Kind) else _constant_of(s) for s in start]
    )
    given = [*(s for s in start if isinstance(s, Kind)), *found.reads]
    operands = (stack(given) if given else arrays.numpy_namespace().zeros(0), moments)
    params: dict[str, Any] = {"method": method, "rtol": rtol, "atol": atol, "breaks": tuple(breaks)}
    if adjoint is not None:
        params["adjoint"] = adjoint
    return bind(primitive, operands, {"system": system, **params})


def _count_error(values: int, states: int) -> EvaluationError:
    return EvaluationError(f"the right side has {values} values for {states} states")


def _constant_of(value: Any) -> Any:
    """A real number as a float, or unchanged if it is a ball. Raises EvaluationError for a complex one."""
    if arrays.is_complex(value):
        raise EvaluationError(
            "a differential equation takes real numbers, and not complex ones",
            hint="write the equations of real and imaginary parts",
        )
    return value if is_exact() and arrays.to_numpy(value).dtype != "float64" else float(value)


def trajectory_of(function: Callable[[Any, Any], Any], start: Any, times: Any, **options: Any) -> Any:
    """The solution, of shape [times, …], of y' = function(t, y), where y is a number or tensor of the shape of `start`.
    Where `start` is complex, so is y.

    Otherwise as `trajectory`.
    """
    shape = arrays.shape(start)
    count = math.prod(shape)
    if arrays.is_complex(start):

        def of_parts(t: Any, parts: Any) -> Any:
            found = function(t, view_as_complex(parts))
            found = add(stack(found) if isinstance(found, list) else found, 0j)
            if math.prod(arrays.shape(found)) != count:
                raise _count_error(math.prod(arrays.shape(found)), count)
            return view_as_real(found)

        return view_as_complex(trajectory_of(of_parts, view_as_real(start), times, **options))
    flat = reshape(start, (count,))

    def slopes(t: Any, states: Sequence[Any]) -> Sequence[Any]:
        found = function(t, reshape(stack(states), shape) if shape else states[0])
        items = reshape(stack(found) if isinstance(found, list) else found, (-1,))
        if arrays.is_complex(items):
            raise EvaluationError(
                "the right side is complex, and the states are real", hint="write a complex start, as in 1+0j"
            )
        return [index(items, k) for k in range(arrays.shape(items)[0])]

    found = trajectory(slopes, [index(flat, k) for k in range(count)], times, **options)
    return reshape(found, (arrays.shape(found)[0], *shape))
