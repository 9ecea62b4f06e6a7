"""Functions that jump or bend, written as those whose switches are found: rounding as `floor`, the rest as comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.functionals.body import Body
from gradcli.loops.body_tracing import frozen
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import (
    absolute,
    copysign,
    floor,
    floor_divide,
    fmod,
    heaviside,
    negative,
    remainder,
    round_to_even,
    trunc,
)
from gradcli.primitives.entries.comparisons import clip_between, greater, less, maximum, minimum, where
from gradcli.primitives.entries.elementwise.trigonometric import atan2, hypot
from gradcli.primitives.entries.exponential import exp, expm1
from gradcli.primitives.entries.special_functions.special import elu, leaky_relu, lgamma
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

_Forms = Mapping[Primitive, Callable[..., Any]]


def _truncated(x: Any) -> Any:
    # With `ceil`, both would switch at each whole number below 0.
    return floor(x) + where(less(x, 0.0), 1.0, 0.0)


def _with_sign_of(y: Any, x: Any) -> Any:
    return where(less(y, 0.0), negative(x), x)


def _magnitude(x: Any, y: Any) -> Any:
    """The root of a sum of squares, which is an absolute value where one of them is 0 everywhere."""
    for one, other in ((x, y), (y, x)):
        if type(other) is float and other == 0.0:
            return absolute(one)
    return hypot(x, y)


_BY_COMPARISONS: _Forms = {
    heaviside: lambda x, y: where(greater(x, 0.0), 1.0, where(less(x, 0.0), 0.0, y)),
    clip_between: lambda x, low, high: minimum(maximum(x, low), high),
    copysign: lambda x, y: _with_sign_of(y, absolute(x)),
    leaky_relu: lambda x, slope: where(greater(x, 0.0), x, slope * x),
    elu: lambda x, alpha: where(greater(x, 0.0), x, alpha * expm1(x)),
    # Smooth where its first operand is positive.
    atan2: lambda y, x: _with_sign_of(y, atan2(absolute(y), x)),
    hypot: _magnitude,
    # The magnitude by which a norm is scaled: what switches with it moves.
    frozen: lambda x: x,
}


def _number_of(*, ordered: bool) -> Callable[..., Any]:
    """The form of the number of choices or arrangements, which is 0 outside of 0 <= k <= N."""

    def form(n: Any, k: Any) -> Any:
        inside = exp(lgamma(n + 1.0) - lgamma(n - k + 1.0) - (0.0 if ordered else lgamma(k + 1.0)))
        return where(less(k, 0.0), 0.0, where(less(n, k), 0.0, inside))

    return form


# By name, as few programs load these.
_BY_COMPARISONS_LATER: Mapping[str, Callable[..., Any]] = {
    "acot": lambda x: _with_sign_of(x, atan2(1.0, absolute(x))),
    "comb": _number_of(ordered=False),
    "perm": _number_of(ordered=True),
}
_BY_FLOOR: _Forms = {
    # Halves are single points.
    round_to_even: lambda x: floor(x + 0.5),
    trunc: _truncated,
    remainder: lambda x, y: x - y * floor(x / y),
    floor_divide: lambda x, y: floor(x / y),
    fmod: lambda x, y: x - y * _truncated(x / y),
}


def by_comparisons(body: Body) -> Body:
    """The function with comparisons in place of functions that compare."""
    return _written(body, _BY_COMPARISONS)


def by_floor_and_comparisons(body: Body) -> Body:
    """The function with `floor` and comparisons in place of all others that round or compare, equal to it but at single
    points, and up to rounding."""
    return _written(body, {**_BY_COMPARISONS, **_BY_FLOOR})


def _written(body: Body, forms: _Forms) -> Body:
    if not any(_form(e.primitive, forms) for path in body.paths for e in path.program.equations):
        return body

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
        for primitive, atoms, params, output in program.equations:
            values = [known[a] if isinstance(a, Variable) else a for a in atoms]
            form = _form(primitive, forms)
            known[output] = bind(primitive, values, params) if form is None else form(*values)
        return [known[a] if isinstance(a, Variable) else a for a in program.outputs]

    return body.derived(run, body.bound, body.reads)


def _form(primitive: Primitive, forms: _Forms) -> Callable[..., Any] | None:
    return forms.get(primitive) or _BY_COMPARISONS_LATER.get(primitive.name)
