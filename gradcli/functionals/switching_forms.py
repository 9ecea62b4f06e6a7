"""Functions that jump or bend, written as those whose switches are found: rounding as `floor`, the rest as comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.functionals.body import Body
from gradcli.loops.body_tracing import frozen
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import (
    floor,
    floor_divide,
    fmod,
    heaviside,
    remainder,
    round_to_even,
    trunc,
)
from gradcli.primitives.entries.comparisons import clip_between, greater, less, maximum, minimum, where
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

_Forms = Mapping[Primitive, Callable[..., Any]]


def _truncated(x: Any) -> Any:
    # With `ceil`, both would switch at each whole number below 0.
    return floor(x) + where(less(x, 0.0), 1.0, 0.0)


_BY_COMPARISONS: _Forms = {
    heaviside: lambda x, y: where(greater(x, 0.0), 1.0, where(less(x, 0.0), 0.0, y)),
    clip_between: lambda x, low, high: minimum(maximum(x, low), high),
    # The magnitude by which a norm is scaled: what switches with it moves.
    frozen: lambda x: x,
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
    """The function with comparisons in place of `clip` and `heaviside`."""
    return _written(body, _BY_COMPARISONS)


def by_floor_and_comparisons(body: Body) -> Body:
    """The function with `floor` and comparisons in place of all others that round or compare, equal to it but at single
    points, and up to rounding."""
    return _written(body, {**_BY_COMPARISONS, **_BY_FLOOR})


def _written(body: Body, forms: _Forms) -> Body:
    if not any(equation.primitive in forms for path in body.paths for equation in path.program.equations):
        return body

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
        for primitive, atoms, params, output in program.equations:
            values = [known[a] if isinstance(a, Variable) else a for a in atoms]
            form = forms.get(primitive)
            known[output] = bind(primitive, values, params) if form is None else form(*values)
        return [known[a] if isinstance(a, Variable) else a for a in program.outputs]

    return body.derived(run, body.bound, body.reads)
