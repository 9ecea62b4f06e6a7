"""Rounds that compute with complex numbers, as rounds that compute with their real and imaginary parts.

Values that rounds pass on or read are split outside of them. Inside, each operation on complex scalars becomes formulas
of the parts, which round as those of NumPy and the C library do. Where they would lose digits, a condition says so, and
the loop is run round by round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import ANALYTIC_IN
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.kinds.branch_points import watching
from gradcli.loops.body_tracing import Row, TracedPath, chosen, frozen
from gradcli.loops.rolled_loop import EXAMPLE
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    copysign,
    divide,
    identity,
    multiply,
    negative,
    subtract,
)
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    logical_and,
    logical_or,
    not_equal,
)
from gradcli.primitives.entries.complex_parts import from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.trigonometric import atan2, cos, cosh, hypot, sin, sinh
from gradcli.primitives.entries.exponential import exp, log
from gradcli.primitives.entries.powers import by_squaring, sqrt
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.number_parts import SELECTING_RULES, Parts, Rule, both, outputs_by_parts
from gradcli.program.record import record

# NumPy computes whole powers below this one by products.
_LEAST_GENERAL_POWER = 100
# Between these bounds, the squares of square roots have full precision.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-290, 1e290
# From this size on, the logarithm of a modulus has the digits of the modulus.
_ACCURATE_LOGARITHM = 0.5

# Takes a condition under which the formulas of parts are as accurate as those of complex numbers.
Require = Callable[[Any], None]


# --- values that rounds pass on and read


class SplitPlaces(NamedTuple):
    """The real variables that stand for complex ones, and the equations that join them."""

    parts: dict[Variable, tuple[Variable, Variable]]
    joining: tuple[Equation, ...]

    def of(self, value: Any, variable: Variable) -> list[tuple[Any, Variable]]:
        """A value and its variable, or both parts of each."""
        parts = self.parts.get(variable)
        if parts is None:
            return [(value, variable)]
        return [(bind(p, (value,), {}), part) for p, part in zip((real_part, imaginary_part), parts)]

    def of_row(self, row: Row) -> list[Row]:
        return [Row(sequence, row.offset, part) for sequence, part in self.of(row.sequence, row.variable)]


def split_places(variables: Sequence[Variable]) -> SplitPlaces:
    parts = {
        v: (Variable(v.shape, "float64", f"real {v.name}"), Variable(v.shape, "float64", f"imag {v.name}"))
        for v in variables
        if v.dtype == "complex128"
    }
    return SplitPlaces(parts, tuple(Equation(from_parts, both, {}, v) for v, both in parts.items()))


def with_split_outputs(path: TracedPath, places: SplitPlaces, carried: Sequence[Variable]) -> TracedPath:
    """A path whose inputs are joined of parts, and whose outputs for complex `carried` variables are both parts."""
    equations, outputs = [*places.joining, *path.equations], list[Atom]()
    for variable, output in zip(carried, path.outputs):
        if variable not in places.parts or not arrays.is_complex(output):
            outputs.append(output)
            continue
        for part, primitive in zip(places.parts[variable], (real_part, imaginary_part)):
            outputs.append(Variable(part.shape, part.dtype))
            equations.append(Equation(primitive, (output,), {}, outputs[-1]))
    return path._replace(equations=tuple(equations), outputs=tuple(outputs))


def joined_results(carried: Sequence[Variable], places: SplitPlaces, found: Sequence[Any]) -> list[Any]:
    """The results of carried variables, all or the first ones, from those of their parts."""
    rest = iter(found)
    return [from_parts(first, next(rest)) if v in places.parts else first for v, first in zip(carried, rest)]


# --- what is analytic


def analytic_carries(carried: Sequence[Variable], others: Sequence[Variable], paths: Sequence[TracedPath]) -> set[int]:
    """The numbers of the complex carried variables that are analytic in the complex values before the first round, and
    in the complex ones of `others`, after any number of rounds."""
    # Maps each variable that depends on complex numbers to whether it is analytic in them.
    known = {v: True for v in (*carried, *others) if arrays.is_complex(v)}
    while True:
        before = dict(known)
        for path in paths:
            kinds = dict(known)
            for equation in path.equations:
                kind = _kind(equation, kinds)
                if kind is not None:
                    kinds[equation.output] = kind
            for variable, output in zip(carried, path.outputs):
                kind = kinds.get(output) if isinstance(output, Variable) else None
                if kind is not None and known.get(variable) is not False:
                    known[variable] = kind and arrays.is_complex(variable)
        if known == before:
            return {k for k, v in enumerate(carried) if arrays.is_complex(v) and known[v]}


def _kind(equation: Equation, kinds: Mapping[Variable, bool]) -> bool | None:
    differentiable = equation.primitive.differentiable(len(equation.inputs))
    found = [kinds.get(a) for i, a in enumerate(equation.inputs) if differentiable >> i & 1 and isinstance(a, Variable)]
    known = [kind for kind in found if kind is not None]
    return all(known) and equation.primitive.numbers == "analytic" if known else None


def note_analytic(value: Any, operands: Sequence[Any]) -> None:
    """Record in the node of a value that it is analytic in operands."""
    if isinstance(value, Tensor) and value.grad_fn is not None:
        value.grad_fn.metadata[ANALYTIC_IN] = [*operands]


# --- operations on scalars


def may_lose_digits(path: TracedPath) -> bool:
    """Return whether `by_parts` requires a condition for an equation of a path."""
    return any(
        e.primitive.name in _CONDITIONAL_RULES and any(map(arrays.is_complex, (*e.inputs, e.output)))
        for e in path.equations
    )


def by_parts(program: Program, flag: int) -> Program:
    """A program of scalars, whose inputs and outputs are real, that computes with real numbers alone.

    Output number `flag` is multiplied by 0 where formulas of parts are not as accurate as those of complex numbers.
    Raises NotRecordableError for an operation that has no such formulas.
    """
    conditions = list[Any]()
    rules = dict(_RULES)
    for name, rule in _CONDITIONAL_RULES.items():
        rules[name] = lambda *operands, rule=rule, **params: rule(conditions.append, *operands, **params)

    def run(**given: Any) -> list[Any]:
        found = outputs_by_parts(program, [*given.values()], rules, _refusal)
        for condition in conditions:
            found[flag] = multiply(found[flag], cast(condition, "float64"))
        return found

    with arrays.using_namespace(None), watching(None):
        recorded = record(run, dict.fromkeys([f"{i}" for i in range(len(program.inputs))], EXAMPLE))
    return recorded.program._replace(guards=())


def _refusal(primitive: Primitive) -> NotRecordableError:
    return NotRecordableError(f"'{primitive.called}' is not computed by real and imaginary parts")


def _cast(x: Any, dtype: str) -> Parts:
    if dtype != "complex128":
        raise NotRecordableError("a complex number is converted")
    return x if isinstance(x, Parts) else Parts(cast(x, "float64"), 0.0)


def _each(primitive: Any) -> Rule:
    """The rule of a primitive that is applied to each part separately."""
    return lambda *operands: Parts(*(primitive(*parts) for parts in zip(*map(both, operands))))


def _multiplied(x: Any, y: Any) -> Parts:
    (a, b), (c, d) = both(x), both(y)
    return Parts(subtract(multiply(a, c), multiply(b, d)), add(multiply(a, d), multiply(b, c)))


def _absolute(x: Any) -> Any:
    """The modulus, whose derivative at 0 is 0."""
    a, b = both(x)
    origin = logical_and(equal(a, 0.0), equal(b, 0.0))
    return chosen(origin, 0.0, hypot(chosen(origin, 1.0, a), b))


_RULES: dict[str, Rule] = {
    **SELECTING_RULES,
    "not_equal": lambda x, y: logical_or(*map(not_equal, both(x), both(y))),
    "isfinite": lambda x: logical_and(*map(isfinite, both(x))),
    "isnan": lambda x: logical_or(*map(isnan, both(x))),
    "cast": _cast,
    "frozen": _each(frozen),
    "identity": _each(identity),
    "zeros_like": lambda _x: Parts(0.0, 0.0),
    "ones_like": lambda _x: Parts(1.0, 0.0),
    "conjugate": lambda x: Parts(both(x).real, negative(both(x).imag)),
    "negative": _each(negative),
    "add": _each(add),
    "subtract": _each(subtract),
    "multiply": _multiplied,
    "abs": _absolute,
}


def _divided(require: Require, x: Any, y: Any) -> Parts:
    """The quotient by Smith's algorithm, with the operations that NumPy has in it."""
    (a, b), (c, d) = both(x), both(y)
    wide = greater_equal(absolute(c), absolute(d))
    large, small = chosen(wide, c, d), chosen(wide, d, c)
    require(not_equal(large, 0.0))
    ratio = divide(small, large)
    scale = divide(1.0, add(large, multiply(small, ratio)))
    first, second = chosen(wide, a, b), chosen(wide, b, a)
    across = multiply(first, ratio)
    imag = chosen(wide, subtract(second, across), subtract(across, second))
    return Parts(multiply(add(first, multiply(second, ratio)), scale), multiply(imag, scale))


def _whole_power(require: Require, x: Any, n: float) -> Parts:
    if n == 0 or abs(n) >= _LEAST_GENERAL_POWER:
        raise NotRecordableError("a power is not a product")
    found: Parts = by_squaring(_multiplied, both(x), int(abs(n)))
    return found if n > 0 else _divided(require, 1.0, found)


def _finite(require: Require, real: Any, imag: Any) -> Parts:
    """A number, as factors of its parts may overflow where it does not."""
    require(logical_and(isfinite(real), isfinite(imag)))
    return Parts(real, imag)


def _exp(require: Require, x: Any) -> Parts:
    a, b = both(x)
    size = exp(a)
    return _finite(require, multiply(size, cos(b)), multiply(size, sin(b)))


def _log(require: Require, x: Any) -> Parts:
    a, b = both(x)
    real = log(hypot(a, b))
    require(logical_and(isfinite(real), greater(absolute(real), _ACCURATE_LOGARITHM)))
    return Parts(real, atan2(b, a))


def _phase(require: Require, x: Any) -> Any:
    a, b = both(x)
    require(logical_or(not_equal(a, 0.0), not_equal(b, 0.0)))
    return atan2(b, a)


def _sqrt(require: Require, x: Any) -> Parts:
    """The principal square root: the larger of its parts by a sum without cancellation, and the other one from it."""
    a, b = both(x)
    right, sign = greater_equal(a, 0.0), copysign(1.0, b)
    square = multiply(0.5, add(hypot(a, b), chosen(right, a, negative(a))))
    require(logical_and(greater(square, _SMALLEST_SQUARE), less(square, _LARGEST_SQUARE)))
    large = sqrt(square)
    small = multiply(0.5, divide(b, large))
    return Parts(chosen(right, large, multiply(sign, small)), chosen(right, small, multiply(sign, large)))


def _sinh(require: Require, x: Any) -> Parts:
    a, b = both(x)
    return _finite(require, multiply(sinh(a), cos(b)), multiply(cosh(a), sin(b)))


def _cosh(require: Require, x: Any) -> Parts:
    a, b = both(x)
    return _finite(require, multiply(cosh(a), cos(b)), multiply(sinh(a), sin(b)))


def _tanh(require: Require, x: Any) -> Parts:
    """The hyperbolic tangent, multiplied above and below by the conjugate of cosh(x), without its cancellation."""
    a, b = both(x)
    below = add(multiply(sinh(a), sinh(a)), multiply(cos(b), cos(b)))
    require(not_equal(below, 0.0))
    return _finite(require, divide(multiply(sinh(a), cosh(a)), below), divide(multiply(sin(b), cos(b)), below))


def _of_rotated(rule: Rule, *, back: bool) -> Rule:
    """The rule of a trigonometric function from that of the hyperbolic one of i*x, turned `back` by -i."""

    def rotated(require: Require, x: Any) -> Parts:
        a, b = both(x)
        real, imag = rule(require, Parts(negative(b), a))
        return Parts(imag, negative(real)) if back else Parts(real, imag)

    return rotated


_CONDITIONAL_RULES: dict[str, Callable[..., Any]] = {
    "divide": _divided,
    "reciprocal": lambda require, x: _divided(require, 1.0, x),
    "whole_power": _whole_power,
    "exp": _exp,
    "log": _log,
    "phase": _phase,
    "sqrt": _sqrt,
    "rsqrt": lambda require, x: _divided(require, 1.0, _sqrt(require, x)),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _of_rotated(_sinh, back=True),
    "cos": _of_rotated(_cosh, back=False),
    "tan": _of_rotated(_tanh, back=True),
}
