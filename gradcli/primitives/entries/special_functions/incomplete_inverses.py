"""Elementwise inverses of the incomplete gamma and beta functions, and the complement of the incomplete beta
function."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.host_functions import by_scipy
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.special_functions.integrals import beta_density, gamma_density
from gradcli.primitives.entries.special_functions.numerical_partials import derivative, partial_of_three, partial_of_two
from gradcli.primitives.families import elementwise, keeping_float32
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_BY_PARAMETERS = "by the parameters g*-d/f, d being the derivative of {0} by each and f that by x"


def _gamma_inverse(name: str, of: str, doc: str, sign: float) -> Primitive:
    def by_parameter(g: Any, y: Any, a: Any, _p: Any) -> Any:
        slope = bind(partial_of_two, (a, y), {"function": of, "orders": (1, 0)})
        return -g * divide(slope, sign * gamma_density(a, y))

    return elementwise(
        name, "a, y", doc,
        time=200,
        forward=keeping_float32(lambda xp, *operands: by_scipy(xp, name, *operands)),
        vjp=(by_parameter, lambda g, y, a, _p: divide(g, sign * gamma_density(a, y))),
        spelling=names_elsewhere("scipy"),
        derivative=f"{_BY_PARAMETERS.format(of)}, g/f",
        domain="a > 0, 0 < y < 1",
        samples=((2.5, 0.7), ([1.5, 4.0], [0.2, 0.6])),
    )  # fmt: skip


gammaincinv = _gamma_inverse("gammaincinv", "gammainc", "the x with gammainc(a, x) = y", 1.0)
gammainccinv = _gamma_inverse("gammainccinv", "gammaincc", "the x with gammaincc(a, x) = y", -1.0)

betaincc = elementwise(
    "betaincc", "a, b, x", "1 - betainc(a, b, x), accurate where that is small",
    time=150,
    vjp=(
        derivative("betaincc", 0, 3),
        derivative("betaincc", 1, 3),
        lambda g, _y, a, b, x: -g * beta_density(a, b, x),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by a and b computed by themselves, -g*x**(a - 1)*(1 - x)**(b - 1)/beta(a, b)",
    domain="a > 0, b > 0, 0 < x < 1",
    samples=((2.5, 1.5, 0.7), ([0.5, 3.0], 2.2, [0.2, 0.5])),
)  # fmt: skip


def _beta_inverse(name: str, of: str, doc: str, sign: float) -> Primitive:
    def by_parameter(g: Any, y: Any, a: Any, b: Any, orders: tuple[int, ...]) -> Any:
        slope = bind(partial_of_three, (a, b, y), {"function": of, "orders": orders})
        return -g * divide(slope, sign * beta_density(a, b, y))

    return elementwise(
        name, "a, b, y", doc,
        time=300,
        forward=keeping_float32(lambda xp, *operands: by_scipy(xp, name, *operands)),
        vjp=(
            lambda g, y, a, b, _p: by_parameter(g, y, a, b, (1, 0, 0)),
            lambda g, y, a, b, _p: by_parameter(g, y, a, b, (0, 1, 0)),
            lambda g, y, a, b, _p: divide(g, sign * beta_density(a, b, y)),
        ),
        spelling=names_elsewhere("scipy"),
        derivative=f"{_BY_PARAMETERS.format(of)}, g/f",
        domain="a > 0, b > 0, 0 < y < 1",
        samples=((2.5, 1.5, 0.7), ([1.5, 3.0], 2.2, [0.2, 0.5])),
    )  # fmt: skip


betaincinv = _beta_inverse("betaincinv", "betainc", "the x with betainc(a, b, x) = y", 1.0)
betainccinv = _beta_inverse("betainccinv", "betaincc", "the x with betaincc(a, b, x) = y", -1.0)
