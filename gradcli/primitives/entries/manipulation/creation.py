"""Functions that create tensors from numbers."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import CallError, EvaluationError, ShapeError
from gradcli.primitives.axes import boolean, integer, whole_numbers
from gradcli.primitives.bind import assume, concrete, constant
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import add, ceil, divide, multiply, sign, subtract
from gradcli.primitives.entries.comparisons import greater, maximum, minimum
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.shape import tril
from gradcli.primitives.operation import Composite

SUBJECT = "creation"

# Costs in eighths of a step (see `gradcli.limits`): a call of an array library, and a random generator (`_GENERATOR`).
_CALL = 16
_INT64 = range(-(2**63), 2**63)
_GENERATOR = 40


def read_shape(shape: tuple[Any, ...]) -> Shape:
    """A shape given as `2, 3` or `[2, 3]`; () if nothing is given. Charges the elements to the budget."""
    sizes = whole_numbers(shape[0] if len(shape) == 1 else shape, "a size") if shape else ()
    if any(s < 0 for s in sizes):
        raise ShapeError(f"a size must not be negative: {list(sizes)}")
    limits.charge_steps(_CALL)
    limits.charge(math.prod(sizes))
    return sizes


def _filled(value: float, sizes: Shape) -> Any:
    if not sizes:
        return value
    return arrays.made(lambda xp: xp.full(sizes, value, arrays.default_dtype()))


zeros = Composite(
    "zeros", "*shape", "a tensor of zeros", lambda *shape: _filled(0.0, read_shape(shape)),
    derivative="none", samples=((2, 3), ([2],)),
)  # fmt: skip

ones = Composite(
    "ones", "*shape", "a tensor of ones", lambda *shape: _filled(1.0, read_shape(shape)),
    derivative="none", samples=((2, 3), ([2],)),
)  # fmt: skip


def _for_array(value: Any) -> Any:
    """`value`; an int outside int64 becomes a float64 array."""
    return value if type(value) is not int or value in _INT64 else arrays.asarray(value, "float64")


full = Composite(
    "full", "shape, value", "a tensor with one value everywhere",
    lambda shape, value: broadcast_to(_for_array(value), read_shape((shape,))),
    derivative="sum(g) by value", samples=(([2, 3], 0.7),),
)  # fmt: skip

full_like = Composite(
    "full_like", "x, value", "a tensor in the shape of x with one value everywhere",
    lambda x, value: broadcast_to(_for_array(value), arrays.shape(x)),
    derivative="0 by x, sum(g) by value", samples=(([1, 2], 0.7),),
)  # fmt: skip


def _eye(n: Any, m: Any = None) -> Any:
    rows, columns = read_shape((n, n if m is None else m))
    return arrays.made(lambda xp: xp.eye(rows, columns, dtype=arrays.default_dtype()))


eye = Composite(
    "eye", "n, m=None", "the identity matrix", _eye, aliases=("identity",),
    derivative="none", samples=(2, (2, 3)),
)  # fmt: skip


def one_host_number(value: Any, name: str) -> Any:
    """`value`, a scalar, as a Python number or a ball. Raises ShapeError if it is not a scalar."""
    if arrays.shape(value):
        raise ShapeError(f"'{name}' needs numbers")
    return arrays.on_host(concrete(value))


def _arange(start: Any, stop: Any = None, step: Any = 1.0) -> Any:
    bounds = (0.0, start, step) if stop is None else (start, stop, step)
    check_real("arange", *bounds)
    first, last, by = (one_host_number(v, "arange") for v in bounds)
    if by == 0 or not all(math.isfinite(v) for v in (first, last, by)):
        raise EvaluationError("'arange' needs finite numbers and a step that is not 0")
    count = integer(ceil(minimum(maximum(divide(subtract(last, first), by), 0.0), 1e18)), "a number of steps")
    limits.charge(count)
    if arrays.PYTHON_NUMBERS.issuperset(map(type, (first, last, by))):
        return arrays.made(lambda xp: xp.arange(first, last, by, dtype=arrays.default_dtype()))
    return add(first, multiply(by, arrays.made(lambda xp: xp.arange(float(count)))))


arange = Composite(
    "arange", "start, stop=None, step=1", "start, start + step, … below stop; from 0 where one number is given",
    _arange, aliases=("range",), derivative="none", samples=(3, (1, 2, 0.25)),
)  # fmt: skip


def _tri(n: Any, m: Any = None, k: Any = 0) -> Any:
    sizes = read_shape((n, n if m is None else m))
    return tril(arrays.made(lambda xp: xp.full(sizes, 1.0, arrays.default_dtype())), k)


tri = Composite(
    "tri", "n, m=None, k=0", "a matrix with ones up to diagonal k and zeros above it", _tri,
    derivative="none", samples=(2, (2, 3), (3, 2, -1)),
)  # fmt: skip


def _fractions(num: Any, endpoint: Any = True) -> Any:
    """Evenly spaced numbers from 0 to 1, which is left out unless `endpoint`."""
    count = read_shape((integer(num, "a number of points"),))[0]
    points = count if boolean(endpoint, "'endpoint'") else count + 1
    if is_exact():
        return divide(arrays.made(lambda xp: xp.arange(float(count))), float(max(points - 1, 1)))
    return arrays.made(lambda xp: xp.linspace(0.0, 1.0, points, dtype=arrays.default_dtype())[:count])


def _linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True) -> Any:
    fractions = _fractions(num, endpoint)
    return add(multiply(start, 1.0 - fractions), multiply(stop, fractions))


linspace = Composite(
    "linspace", "start, stop, num=50, endpoint=True",
    "num evenly spaced numbers from start to stop, which is left out if endpoint is False", _linspace,
    derivative="sum(g*(1 - t)) by start and sum(g*t) by stop, t = linspace(0, 1, num, endpoint)",
    samples=((0.0, 1.0, 5), (1.0, -1.0, 3), (0.5, 2.0, 4, False)),
)  # fmt: skip


def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True) -> Any:
    check_real("geomspace", start, stop)
    side = sign(constant(start))
    if not assume(greater(multiply(side, sign(constant(stop))), 0)):
        raise EvaluationError("'geomspace' needs two numbers of the same sign that are not 0")
    fractions = _fractions(num, endpoint)
    magnitudes = multiply(power(multiply(side, start), 1.0 - fractions), power(multiply(side, stop), fractions))
    return multiply(side, magnitudes)


geomspace = Composite(
    "geomspace", "start, stop, num=50, endpoint=True",
    "num numbers from start to stop, each the same multiple of the one before; endpoint=False leaves out stop", _geomspace,
    derivative="sum(g*y*(1 - t))/start and sum(g*y*t)/stop, t = linspace(0, 1, num, endpoint)",
    domain="start*stop > 0",
    samples=((1.0, 8.0, 4), (-0.5, -2.0, 3), (0.5, 2.0, 4, False)),
)  # fmt: skip

logspace = Composite(
    "logspace", "start, stop, num=50, base=10.0", "base to the powers linspace(start, stop, num)",
    lambda start, stop, num=50, base=10.0: power(base, _linspace(start, stop, num)),
    derivative="sum(g*y*log(base)*(1 - t)) by start and sum(g*y*log(base)*t) by stop, t = linspace(0, 1, num)",
    domain="base > 0",
    samples=((0.0, 2.0, 3), (1.0, -1.0, 3, 2.0)),
)  # fmt: skip


def _random(name: str, draw: str) -> Any:
    def function(*shape: Any, seed: Any = None) -> Any:
        if seed is None:
            raise CallError(f"'{name}' needs a seed", hint=f"{name}({', '.join('n' for _ in shape)}, seed=0)")
        limits.charge_steps(_GENERATOR)
        number, sizes = integer(seed, "a seed"), read_shape(shape)
        if number < 0:
            raise EvaluationError("a seed must not be negative")
        return arrays.made(
            lambda xp: (
                getattr(xp.random.default_rng(number), draw)(sizes).astype(arrays.default_dtype())
                if sizes
                else getattr(xp.random.default_rng(number), draw)()
            )
        )

    return function


randn = Composite(
    "randn", "*shape, seed", "standard normal numbers, the same for the same seed",
    _random("randn", "standard_normal"), derivative="none",
    example="'randn(3, seed=0)'",
)  # fmt: skip

rand = Composite(
    "rand", "*shape, seed", "uniform numbers in [0, 1), the same for the same seed",
    _random("rand", "random"), derivative="none",
    example="'rand(2, 2, seed=0)'",
)  # fmt: skip
