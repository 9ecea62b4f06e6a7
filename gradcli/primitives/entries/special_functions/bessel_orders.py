"""Elementwise functions related to Bessel's: spherical Bessel, Struve and Airy functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.dtypes import is_complex
from gradcli.arrays.host_functions import by_scipy
from gradcli.arrays.mathematical_constants import by_formula
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.special_functions.numerical_partials import derivative, partial_of_two
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_ORDERS = ((2.5, 0.7), (1.5, [0.4, 2.5]))
_HIGHEST_ORDER = 1000
_over_sqrt_pi = by_formula(lambda m: 1.0 / m.sqrt(m.pi))

kv: Primitive = elementwise(
    "kv", "v, x", "modified Bessel function of the second kind and order v",
    numbers="analytic", of_complex=complex_by_scipy("kv"),
    time=500,
    vjp=(derivative("kv", 0, 2), lambda g, _y, v, x: g * (-0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x)))),
    spelling=names_elsewhere("scipy", sympy="besselk"),
    derivative="by v computed by itself, -g*(kv(v - 1, x) + kv(v + 1, x))/2",
    domain="x > 0",
    aliases=("kn", "besselk"),
    samples=_ORDERS,
)  # fmt: skip


def _kve_by_x(g: Any, y: Any, v: Any, x: Any) -> Any:
    if not is_complex(x):
        return g * bind(partial_of_two, (v, x), {"function": "kve", "orders": (0, 1)})
    return g * (y - 0.5 * (kve(v - 1.0, x) + kve(v + 1.0, x)))


kve: Primitive = elementwise(
    "kve", "v, x", "exp(x)*kv(v, x), without underflow",
    time=500,
    numbers="analytic", of_complex=complex_by_scipy("kve"),
    vjp=(derivative("kve", 0, 2), _kve_by_x),
    spelling=names_elsewhere("scipy"),
    derivative="both computed by themselves; by x g*(kve(v, x) - (kve(v - 1, x) + kve(v + 1, x))/2)",
    domain="x > 0",
    samples=_ORDERS,
)  # fmt: skip


def _struve(name: str, doc: str) -> Primitive:
    def by_x(g: Any, y: Any, v: Any, x: Any) -> Any:
        return g * (primitive(v - 1.0, x) - divide(v, x) * y)

    primitive = elementwise(
        name, "v, x", doc,
        time=500,
        vjp=(derivative(name, 0, 2), by_x),
        spelling=names_elsewhere("scipy"),
        derivative=f"by v computed by itself, g*({name}(v - 1, x) - v/x*{name}(v, x))",
        domain="x > 0",
        samples=_ORDERS,
    )  # fmt: skip
    return primitive


struve = _struve("struve", "Struve's function of order v")
modstruve = _struve("modstruve", "modified Struve function of order v")


def _spherical(name: str, doc: str, by_x: Callable[..., Any], formula: str, **fields: Any) -> Primitive:
    """A spherical Bessel function of integer order n, with a derivative in terms of orders n - 1 and n + 1."""

    def call(n: Any, x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
        order = integer(n, f"the order of '{name}'")
        if not 0 <= order <= _HIGHEST_ORDER:
            raise EvaluationError(f"the order of '{name}' must be from 0 to {_HIGHEST_ORDER:,}")
        return (x,), {"n": order}

    return elementwise(
        name, "n, x", f"{doc} and whole order n",
        time=100,
        forward=keeping_float32(lambda xp, x, *, n: by_scipy(xp, name, x, n=n)),
        vjp=(by_x,),
        prepare=call,
        spelling=names_elsewhere("scipy"),
        derivative=f"{formula}, where n = 0 that with n + 1 alone",
        samples=((2, 0.7), (3, [0.4, 2.5])),
        **fields,
    )  # fmt: skip


def _between(of: Callable[[], Primitive], below: float, above: float) -> Callable[..., Any]:
    """The vjp rule g*(below*n*f(n - 1) + above*(n + 1)*f(n + 1))/(2*n + 1), DLMF 10.51."""

    def by_x(g: Any, _y: Any, x: Any, *, n: int) -> Any:
        following = bind(of(), (x,), {"n": n + 1})
        if not n:
            return g * (above * following)
        before = bind(of(), (x,), {"n": n - 1})
        return g * divide(below * n * before + above * (n + 1.0) * following, 2.0 * n + 1.0)

    return by_x


spherical_jn: Primitive = _spherical(
    "spherical_jn", "spherical Bessel function of the first kind", _between(lambda: spherical_jn, 1.0, -1.0),
    "g*(n*spherical_jn(n - 1, x) - (n + 1)*spherical_jn(n + 1, x))/(2*n + 1)",
)  # fmt: skip
spherical_yn: Primitive = _spherical(
    "spherical_yn", "spherical Bessel function of the second kind", _between(lambda: spherical_yn, 1.0, -1.0),
    "g*(n*spherical_yn(n - 1, x) - (n + 1)*spherical_yn(n + 1, x))/(2*n + 1)",
    domain="x != 0",
)  # fmt: skip
spherical_in: Primitive = _spherical(
    "spherical_in", "modified spherical Bessel function of the first kind", _between(lambda: spherical_in, 1.0, 1.0),
    "g*(n*spherical_in(n - 1, x) + (n + 1)*spherical_in(n + 1, x))/(2*n + 1)",
)  # fmt: skip
spherical_kn: Primitive = _spherical(
    "spherical_kn", "modified spherical Bessel function of the second kind", _between(lambda: spherical_kn, -1.0, -1.0),
    "-g*(n*spherical_kn(n - 1, x) + (n + 1)*spherical_kn(n + 1, x))/(2*n + 1)",
    domain="x > 0",
)  # fmt: skip


def _airy(name: str, doc: str, by_x: Callable[..., Any], formula: str, **fields: Any) -> Primitive:
    return elementwise(
        name, "x", doc,
        time=60,
        forward=keeping_float32(lambda xp, x: by_scipy(xp, name, x)),
        numbers="analytic", of_complex=complex_by_scipy(name),
        vjp=(by_x,),
        spelling=names_elsewhere("sympy"),
        derivative=formula,
        samples=_ANYWHERE,
        **fields,
    )  # fmt: skip


airyai: Primitive = _airy(
    "airyai", "Airy's function Ai", lambda g, _y, x: g * airyaiprime(x), "g*airyaiprime(x)", aliases=("airy_ai",)
)
airyaiprime: Primitive = _airy("airyaiprime", "derivative of Ai", lambda g, _y, x: g * (x * airyai(x)), "g*x*airyai(x)")
airybi: Primitive = _airy("airybi", "Airy's function Bi", lambda g, _y, x: g * airybiprime(x), "g*airybiprime(x)")
airybiprime: Primitive = _airy("airybiprime", "derivative of Bi", lambda g, _y, x: g * (x * airybi(x)), "g*x*airybi(x)")

airy = Composite(
    "airy", "x", "the four Airy functions Ai, Ai', Bi, Bi'",
    lambda x: (airyai(x), airyaiprime(x), airybi(x), airybiprime(x)),
    derivative="those of the four",
    example="'airy(x)[0]' x=0.7",
)  # fmt: skip
