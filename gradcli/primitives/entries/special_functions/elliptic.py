"""Elementwise elliptic integrals: incomplete, Carlson's symmetric forms, and SymPy's names."""

from __future__ import annotations

from typing import Any

from gradcli.primitives.entries.elementwise.trigonometric import sin
from gradcli.primitives.entries.powers import rsqrt, sqrt
from gradcli.primitives.entries.special_functions.integrals import ellipe
from gradcli.primitives.entries.special_functions.numerical_partials import derivative
from gradcli.primitives.families import elementwise
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_PAIRS = ((0.7, 0.4), ([0.4, -1.2], [0.8, -2.5]))
_POSITIVE_PAIRS = ((0.7, 1.3), ([[0.3, 1.2]], [[0.8], [2.5]]))
_TRIPLES = ((0.7, 1.3, 0.4), ([0.3, 1.2], [0.8, 2.5], 0.6))


def _delta_square(phi: Any, m: Any) -> Any:
    sine = sin(phi)
    return 1.0 - m * (sine * sine)


ellipkinc = elementwise(
    "ellipkinc", "phi, m", "incomplete elliptic integral of the first kind, that of 1/sqrt(1 - m*sin(t)**2) from 0 to phi",
    time=40,
    vjp=(lambda g, _y, phi, m: g * rsqrt(_delta_square(phi, m)), derivative("ellipkinc", 1, 2)),
    spelling=names_elsewhere("scipy", sympy="elliptic_f"),
    derivative="g/sqrt(1 - m*sin(phi)**2), by m computed by itself",
    domain="m*sin(phi)**2 < 1",
    aliases=("elliptic_f",),
    samples=_PAIRS,
)  # fmt: skip

ellipeinc = elementwise(
    "ellipeinc", "phi, m", "incomplete elliptic integral of the second kind, that of sqrt(1 - m*sin(t)**2) from 0 to phi",
    time=40,
    vjp=(lambda g, _y, phi, m: g * sqrt(_delta_square(phi, m)), derivative("ellipeinc", 1, 2)),
    spelling=names_elsewhere("scipy", sympy="elliptic_e"),
    derivative="g*sqrt(1 - m*sin(phi)**2), by m computed by itself",
    domain="m*sin(phi)**2 < 1",
    samples=_PAIRS,
)  # fmt: skip

ellipkm1 = elementwise(
    "ellipkm1", "p", "ellipk(1 - p), with every digit where p is near 0",
    time=10,
    vjp=(derivative("ellipkm1", 0, 1),),
    spelling=names_elsewhere("scipy"),
    derivative="computed by itself: g*(p*ellipkm1(p) - ellipe(1 - p))/(2*p*(1 - p))",
    domain="p > 0",
    samples=(0.7, [0.4, 2.5]),
)  # fmt: skip


def _carlson(name: str, signature: str, doc: str, domain: str, samples: Any) -> Primitive:
    count = len(signature.split(", "))
    return elementwise(
        name, signature, doc,
        time=40,
        vjp=tuple(derivative(name, place, count) for place in range(count)),
        spelling=names_elsewhere("scipy"),
        derivative="computed by themselves",
        domain=domain,
        samples=samples,
    )  # fmt: skip


elliprf = _carlson(
    "elliprf", "x, y, z", "Carlson's R_F, half the integral of 1/sqrt((t + x)*(t + y)*(t + z)) over t > 0",
    "x > 0, y > 0, z > 0", _TRIPLES,
)  # fmt: skip
elliprd = _carlson("elliprd", "x, y, z", "Carlson's R_D, elliprj(x, y, z, z)", "x > 0, y > 0, z > 0", _TRIPLES)
elliprg = _carlson(
    "elliprg", "x, y, z", "Carlson's R_G, symmetric and of the second kind", "x > 0, y > 0, z > 0", _TRIPLES
)
elliprc = _carlson("elliprc", "x, y", "Carlson's R_C, elliprf(x, y, y)", "x > 0, y > 0", _POSITIVE_PAIRS)
elliprj = _carlson(
    "elliprj", "x, y, z, p", "Carlson's R_J, 3/2 times the integral of 1/((t + p)*sqrt((t + x)*(t + y)*(t + z))) over t > 0",
    "x > 0, y > 0, z > 0, p > 0", ((0.7, 1.3, 0.4, 0.9), ([0.3, 1.2], [0.8, 2.5], 0.6, 1.1)),
)  # fmt: skip


def _elliptic_e(z: Any, m: Any = None) -> Any:
    return ellipe(z) if m is None else ellipeinc(z, m)


elliptic_e = Composite(
    "elliptic_e", "z, m=None", "complete elliptic integral of the second kind; with m that from 0 to z", _elliptic_e,
    derivative="that of ellipe, or of ellipeinc",
    domain="z < 1, or m*sin(z)**2 < 1",
    samples=(0.7, [0.4, -2.5]),
)  # fmt: skip
