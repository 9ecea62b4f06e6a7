"""Partial derivatives without a closed form, by parameters such as orders, computed numerically in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.host_functions import by_balls
from gradcli.primitives.bind import bind
from gradcli.primitives.families import elementwise, keeping_float32
from gradcli.primitives.primitive import Primitive

SUBJECT = "special"

# The time of one derivative in FLINT, in elements (the time of one element of a sum).
_FLINT_COST = 20_000


# By the number of operands: turns a function of (g, operands) into a vjp rule with explicit parameters, as
# `parameters_read` inspects the names of those that a rule reads.
_RULES: Mapping[int, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    1: lambda made: lambda g, _y, x, **params: made(g, (x,), **params),
    2: lambda made: lambda g, _y, x, y, **params: made(g, (x, y), **params),
    3: lambda made: lambda g, _y, x, y, z, **params: made(g, (x, y, z), **params),
    4: lambda made: lambda g, _y, w, x, y, z, **params: made(g, (w, x, y, z), **params),
}


def _partial(name: str, signature: str, **fields: Any) -> Primitive:
    """A primitive with the partial derivatives of functions of the operands in `signature`.

    Its parameters are the name of the `function` and the `orders` of differentiation by each operand.
    """
    count = len(signature.split(", "))

    def rule(place: int) -> Callable[..., Any]:
        def made(g: Any, operands: Sequence[Any], *, function: str, orders: Sequence[int]) -> Any:
            further = tuple(n + (i == place) for i, n in enumerate(orders))
            return g * bind(primitive, operands, {"function": function, "orders": further})

        return _RULES[count](made)

    def prepared(*given: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
        return given[:count], {"function": given[count], "orders": given[count + 1]}

    primitive = elementwise(
        name, f"{signature}, function, orders", f"a partial derivative of a function of {signature}",
        internal="derivative", time=_FLINT_COST,
        forward=keeping_float32(lambda xp, *operands, **params: by_balls(xp, name, *operands, **params)),
        vjp=tuple(map(rule, range(count))),
        prepare=prepared,
        derivative="g times that of an order more",
        **fields,
    )  # fmt: skip
    return primitive


partial_of_one = _partial(
    "partial_of_one", "x",
    domain="where the function is analytic",
    samples=((0.7, "ellipkm1", (1,)), ([0.4, 2.5], "ellipkm1", (2,))),
)  # fmt: skip
partial_of_two = _partial(
    "partial_of_two", "x, y",
    domain="where the function is analytic",
    samples=((2.5, 0.7, "kv", (1, 0)), ([1.5, 2.0], [0.4, 2.5], "kv", (1, 1))),
)  # fmt: skip
partial_of_three = _partial(
    "partial_of_three", "x, y, z",
    domain="where the function is analytic",
    samples=((2.5, 1.5, 0.7, "betainc", (1, 0, 0)), ([1.5, 2.0], [0.7, 1.2], [0.4, 0.6], "betainc", (0, 1, 1))),
)  # fmt: skip
partial_of_four = _partial(
    "partial_of_four", "w, x, y, z",
    domain="where the function is analytic",
    samples=((2.5, 1.5, 2.2, 0.7, "hyp2f1", (1, 0, 0, 0)),),
)  # fmt: skip
_BY_COUNT = {1: partial_of_one, 2: partial_of_two, 3: partial_of_three, 4: partial_of_four}


def derivative(function: str, place: int, count: int) -> Callable[..., Any]:
    """The vjp rule, by the operand at index `place`, of an elementwise function of `count` operands without a closed
    form."""
    orders = tuple(int(i == place) for i in range(count))
    return _RULES[count](
        lambda g, operands: g * bind(_BY_COUNT[count], operands, {"function": function, "orders": orders})
    )
