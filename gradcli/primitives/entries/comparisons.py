"""Elementwise comparisons, logical functions and selection by conditions."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli import arrays
from gradcli.primitives.bind import assume
from gradcli.primitives.families import elementwise, predicate
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "elementwise"

_PAIRS = ((0.7, 1.3), (-2.0, 0.5), ([[0.3, -1.2]], [[0.8], [2.5]]))

less: Primitive = predicate(
    "less", "x, y", "x < y",
    operator="<", spelling=names_elsewhere(torch="lt", sympy="Lt"), aliases=("lt",), samples=_PAIRS,
)  # fmt: skip
less_equal: Primitive = predicate(
    "less_equal", "x, y", "x <= y",
    operator="<=", spelling=names_elsewhere(torch="le", sympy="Le"), aliases=("le",), samples=_PAIRS,
)  # fmt: skip
greater: Primitive = predicate(
    "greater", "x, y", "x > y",
    operator=">", spelling=names_elsewhere(torch="gt", sympy="Gt"), aliases=("gt",), samples=_PAIRS,
)  # fmt: skip
greater_equal: Primitive = predicate(
    "greater_equal", "x, y", "x >= y",
    operator=">=", spelling=names_elsewhere(torch="ge", sympy="Ge"), aliases=("ge",), samples=_PAIRS,
)  # fmt: skip
equal: Primitive = predicate(
    "equal", "x, y", "x == y",
    numbers="complex",
    commutative=True, operator="==", spelling=names_elsewhere(torch="eq", sympy="Eq"), aliases=("eq",), samples=_PAIRS,
)  # fmt: skip
not_equal: Primitive = predicate(
    "not_equal", "x, y", "x != y",
    numbers="complex",
    commutative=True, operator="!=", spelling=names_elsewhere(torch="ne", sympy="Ne"), aliases=("ne",), samples=_PAIRS,
)  # fmt: skip
isfinite = predicate(
    "isfinite", "x", "whether x is neither infinite nor nan",
    numbers="complex",
    spelling=names_elsewhere("c"), samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip
isnan = predicate(
    "isnan", "x", "whether x is nan",
    numbers="complex",
    spelling=names_elsewhere("c"), samples=(0.7, [-1.0, 2.0]),
)  # fmt: skip
logical_not: Primitive = predicate(
    "logical_not", "x", "not x",
    numbers="complex",
    spelling=names_elsewhere(sympy="Not"), samples=(True, [True, False]),
)  # fmt: skip
logical_and: Primitive = predicate(
    "logical_and", "x, y", "x and y",
    numbers="complex",
    commutative=True, spelling=names_elsewhere(sympy="And"), samples=((True, False),),
)  # fmt: skip
logical_or: Primitive = predicate(
    "logical_or", "x, y", "x or y",
    numbers="complex",
    commutative=True, spelling=names_elsewhere(sympy="Or"), samples=((True, False),),
)  # fmt: skip


def usable_divisor(x: Any) -> Any:
    """Return whether x is finite and not 0."""
    return logical_and(isfinite(x), not_equal(x, 0))


def smallest_normal(x: Any) -> float:
    """The smallest normal number of the dtype of x; of float64 if x is not floating."""
    dtype = arrays.real_dtype(arrays.dtype_name(x)) if arrays.is_inexact(x) else "float64"
    return float(arrays.numpy_namespace().finfo(dtype).smallest_normal)


def nowhere(condition: Any) -> bool:
    """Return whether a condition holds for no element. A recorded program keeps it as a guard, as in `assume`."""
    return assume(logical_not(condition))


where: Primitive = elementwise(
    "where", "condition, x, y", "x where the condition is true, else y",
    numbers="analytic",
    rounds_alike=True, keeps_integers=True, truths=True, jet=linear,
    vjp=(
        None,
        lambda g, _y, c, _a, _b: where(c, g, 0.0),
        lambda g, _y, c, _a, _b: where(c, 0.0, g),
    ),
    derivative="g where the condition is true, else 0; the rest to y",
    edges=("what is not taken may be nan or infinite: its derivative is 0",),
    selects=True,
    samples=((True, 0.7, 1.3), ([True, False], [1.0, 2.0], [0.5, 0.4])),
    example="'where(x > 0, log(x), 0)' x=-1",
)  # fmt: skip


def _share(g: Any, wins: Any, ties: Any) -> Any:
    return where(wins, g, where(ties, 0.5 * g, 0.0))


def _larger_or_smaller(name: str, doc: str, sign: str, loses: Any) -> Primitive:
    # A comparison with nan is false, so a nan operand neither loses nor ties, and keeps its cotangent.
    return elementwise(
        name, "x, y", doc,
        rounds_alike=True, keeps_integers=True,
        vjp=(
            lambda g, _y, a, b: _share(g, logical_not(loses(a, b)), equal(a, b)),
            lambda g, _y, a, b: _share(g, logical_not(loses(b, a)), equal(a, b)),
        ),
        spelling=names_elsewhere(c=f"f{name[:3]}", sympy=name[:3].capitalize()),
        derivative=f"g where x {sign} y, g/2 where x = y, else 0; the rest to y",
        domain="smooth where x != y",
        edges=("where x = y, each gets half of g", "nan where x or y is nan"),
        selects=True,
        smooth=lambda x, y: nowhere(equal(x, y)),
        samples=_PAIRS,
    )  # fmt: skip


maximum = _larger_or_smaller("maximum", "the larger of x and y", ">", lambda x, y: less_equal(x, y))
minimum = _larger_or_smaller("minimum", "the smaller of x and y", "<", lambda x, y: greater_equal(x, y))
_COMPARING = frozenset({maximum, minimum, equal, not_equal, less, less_equal, greater, greater_equal})


def compares_with_itself(primitive: Primitive, operands: Sequence[Any]) -> bool:
    """Return whether a primitive compares a value with itself, so that it has no kink and does not switch."""
    return primitive in _COMPARING and operands[0] is operands[1]


clip_between = elementwise(
    "clip", "x, min, max", "x held between min and max",
    internal=True,
    forward=lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high),
    vjp=(
        lambda g, _y, x, low, high: where(
            logical_and(greater_equal(x, low), less_equal(x, high)), g, 0.0
        ),
        lambda g, _y, x, low, high: where(logical_and(less(x, low), less_equal(low, high)), g, 0.0),
        lambda g, _y, x, low, high: where(greater(maximum(x, low), high), g, 0.0),
    ),
    spelling=names_elsewhere("numpy"),
    derivative="g where min <= x <= max, else 0; the rest to the bound that holds",
    domain="smooth where x is on no bound",
    selects=True,
    smooth=lambda x, low, high: nowhere(logical_or(equal(x, low), equal(x, high))),
    node_name="ClampBackward1",
    samples=((0.7, 0.0, 1.0), ([-1.0, 2.0, 0.5], 0.0, 1.0)),
)  # fmt: skip


def _clip_call(x: Any, min: Any = None, max: Any = None) -> Any:
    return clip_between(x, float("-inf") if min is None else min, float("inf") if max is None else max)


clip = Composite(
    "clip", "x, min=None, max=None", "x held between min and max", _clip_call,
    derivative="g where min <= x <= max, else 0; the rest to the bound that holds",
    domain="smooth where x is on no bound",
    edges=("on a bound, the derivative by x is 1 and by the bound 0", "where min > max, the value is max"),
    aliases=("clamp",),
    samples=((0.7, 0.0, 1.0), ([-1.0, 2.0, 0.5], 0.0, 1.0)),
)  # fmt: skip
