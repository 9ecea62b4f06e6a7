"""Initial value problems of the literature, with the values that their names stand for.

The smooth ones are the 25 of DETEST (T. E. Hull and others, "Comparing numerical methods for ordinary differential
equations", SIAM Journal on Numerical Analysis 9 (1972), 603), from 0 to 20; the stiff ones those of F. Mazzia and C. Magherini,
"Test Set for Initial Value Problem Solvers", and of E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class InitialValueProblem:
    """y' = right_side(t, y) from `start` at 0 to `end`.

    The right side is an expression of Python and of programs, which reads `y`, `t` and the `parameters`.
    """

    start: Sequence[float]
    right_side: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    end: float = 20.0
    # Relative to the largest state so far, and 0 where states are small beside others.
    atol: float = 1e-14


def _tridiagonal(n: int) -> str:
    inner = [f"a*y[{i - 1}] - 2*a*y[{i}] + a*y[{i + 1}]" for i in range(1, n - 1)]
    return f"[-2*a*y[0] + a*y[1], {', '.join(inner)}, a*y[{n - 2}] - 2*a*y[{n - 1}]]"


def _orbit(eccentricity: float) -> InitialValueProblem:
    cubed = "(y[0]**2 + y[1]**2)**1.5"
    return InitialValueProblem(
        [1 - eccentricity, 0.0, 0.0, math.sqrt((1 + eccentricity) / (1 - eccentricity))],
        f"[y[2], y[3], -g*y[0]/{cubed}, -g*y[1]/{cubed}]",
        {"g": 1.0},
    )


_PLANETS = {
    "ma": 0.000954786104043, "mb": 0.000285583733151, "mc": 0.0000437273164546, "md": 0.0000517759138449,
    "me": 0.00000277777777778,
}  # fmt: skip
# Places, one planet after the other, and velocities.
_FIVE_BODIES = [
    3.42947415189, 3.35386959711, 1.35494901715, 6.64145542550, 5.97156957878, 2.18231499728,
    11.2630437207, 14.6952576794, 6.27960525067, -30.1552268759, 1.65699966404, 1.43785752721,
    -21.1238353380, 28.4465098142, 15.3882659679,
    -0.557160570446, 0.505696783289, 0.230578543901, -0.415570776342, 0.365682722812, 0.169143213293,
    -0.325325669158, 0.189706021964, 0.0877265322780, -0.0240476254170, -0.287659532608, -0.117219543175,
    -0.176860753121, -0.216393453025, -0.0148647893090,
]  # fmt: skip


def _five_bodies() -> str:
    def cubed(place: Sequence[str]) -> str:
        return f"({' + '.join(f'({x})**2' for x in place)})**1.5"

    places = [[f"y[{3 * j + i}]" for i in range(3)] for j in range(5)]
    rates = [f"y[{15 + k}]" for k in range(15)]
    for j, place in enumerate(places):
        for i in range(3):
            parts = [f"-(1.00000597682 + {[*_PLANETS][j]})*{place[i]}/{cubed(place)}"]
            for k, other in enumerate(places):
                if k != j:
                    between = cubed([f"{a} - {b}" for a, b in zip(other, place)])
                    parts.append(f"{[*_PLANETS][k]}*(({other[i]} - {place[i]})/{between} - {other[i]}/{cubed(other)})")
            rates.append(f"2.95912208286*({' + '.join(parts)})")
    return f"[{', '.join(rates)}]"


_TEN = [1.0, *[0.0] * 9]
SMOOTH = {
    "A1": InitialValueProblem([1.0], "[-k*y[0]]", {"k": 1.0}),
    "A2": InitialValueProblem([1.0], "[-k*y[0]**3]", {"k": 0.5}),
    "A3": InitialValueProblem([1.0], "[y[0]*cos(w*t)]", {"w": 1.0}),
    "A4": InitialValueProblem([1.0], "[r*y[0]*(1 - y[0]/c)]", {"r": 0.25, "c": 20.0}),
    "A5": InitialValueProblem([4.0], "[(y[0] - a*t)/(y[0] + b*t)]", {"a": 1.0, "b": 1.0}),
    "B1": InitialValueProblem([1.0, 3.0], "[a*(y[0] - y[0]*y[1]), -b*(y[1] - y[0]*y[1])]", {"a": 2.0, "b": 1.0}),
    "B2": InitialValueProblem([2.0, 0.0, 1.0], "[-a*y[0] + y[1], a*y[0] - 2*y[1] + y[2], y[1] - y[2]]", {"a": 1.0}),
    "B3": InitialValueProblem([1.0, 0.0, 0.0], "[-a*y[0], a*y[0] - b*y[1]**2, b*y[1]**2]", {"a": 1.0, "b": 1.0}),
    "B4": InitialValueProblem(
        [3.0, 0.0, 0.0],
        "[-y[1] - a*y[0]*y[2]/sqrt(y[0]**2 + y[1]**2), y[0] - a*y[1]*y[2]/sqrt(y[0]**2 + y[1]**2), "
        "a*y[0]/sqrt(y[0]**2 + y[1]**2)]",
        {"a": 1.0},
    ),
    "B5": InitialValueProblem([0.0, 1.0, 1.0], "[y[1]*y[2], -y[0]*y[2], -k*y[0]*y[1]]", {"k": 0.51}),
    "C1": InitialValueProblem(
        _TEN, f"[-k*y[0], {', '.join(f'k*y[{i - 1}] - k*y[{i}]' for i in range(1, 9))}, k*y[8]]", {"k": 1.0}
    ),
    "C2": InitialValueProblem(
        _TEN, f"[-k*y[0], {', '.join(f'{i}*k*y[{i - 1}] - {i + 1}*k*y[{i}]' for i in range(1, 9))}, 9*k*y[8]]",
        {"k": 1.0},
    ),
    "C3": InitialValueProblem(_TEN, _tridiagonal(10), {"a": 1.0}),
    "C4": InitialValueProblem([1.0, *[0.0] * 50], _tridiagonal(51), {"a": 1.0}),
    "C5": InitialValueProblem(_FIVE_BODIES, _five_bodies(), _PLANETS),
    **{f"D{i}": _orbit(e) for i, e in enumerate((0.1, 0.3, 0.5, 0.7, 0.9), 1)},
    "E1": InitialValueProblem(
        [0.6713967071418030, 0.09540051444747446],
        "[y[1], -(y[1]/(t + 1) + (1 - n/(t + 1)**2)*y[0])]", {"n": 0.25},
    ),
    "E2": InitialValueProblem([2.0, 0.0], "[y[1], m*(1 - y[0]**2)*y[1] - y[0]]", {"m": 1.0}),
    "E3": InitialValueProblem(
        [0.0, 0.0], "[y[1], c*y[0]**3 - y[0] + a*sin(w*t)]", {"c": 1 / 6, "a": 2.0, "w": 2.78535}
    ),
    "E4": InitialValueProblem([30.0, 0.0], "[y[1], a - b*y[1]**2]", {"a": 0.032, "b": 0.4}),
    "E5": InitialValueProblem([0.0, 0.0], "[y[1], sqrt(1 + y[1]**2)/(c - t)]", {"c": 25.0}),
}  # fmt: skip

# What is made of what in air that is polluted: the rate constant, the species that react, and those that come of it.
_REACTIONS = (
    (0.35, (1,), (2, 3)), (26.6, (2, 4), (1,)), (1.23e4, (5, 2), (6, 1)), (8.6e-4, (7,), (5, 5, 8)), (8.2e-4, (7,), (8,)),
    (1.5e4, (7, 6), (8, 5)), (1.3e-4, (9,), (10, 8, 5)), (2.4e4, (9, 6), (11,)), (1.65e4, (11, 2), (1, 10, 12)),
    (9e3, (11, 1), (13,)), (0.022, (13,), (11, 1)), (1.2e4, (10, 2), (1, 14)), (1.88, (14,), (7, 5)),
    (1.63e4, (1, 6), (15,)), (4.8e6, (3,), (4,)), (3.5e-4, (4,), (16,)), (0.0175, (4,), (3,)), (1e8, (16,), (6, 6)),
    (4.44e11, (16,), (3,)), (1240.0, (17, 6), (18, 5)), (2.1, (19,), (2,)), (5.78, (19,), (3, 1)), (0.0474, (1, 4), (19,)),
    (1780.0, (19, 1), (20,)), (3.12, (20,), (19, 1)),
)  # fmt: skip


def _pollution() -> str:
    rates: list[list[str]] = [[] for _ in range(20)]
    for number, (_, consumed, made) in enumerate(_REACTIONS, 1):
        flow = "*".join([f"k{number}", *(f"y[{i - 1}]" for i in consumed)])
        for i in consumed:
            rates[i - 1].append(f"- {flow}")
        for i in made:
            rates[i - 1].append(f"+ {flow}")
    return f"[{', '.join('0 ' + ' '.join(rate) for rate in rates)}]"


def _brusselator(n: int) -> str:
    """Two reacting species on a line of n points with fixed ends."""
    rates = []
    for i in range(n):
        u, v = f"y[{i}]", f"y[{n + i}]"
        ends = [[f"y[{k * n + j}]" if 0 <= j < n else e for j in (i - 1, i + 1)] for k, e in enumerate(("1", "b"))]
        scale = f"d*{(n + 1) ** 2}"
        rates.append(f"1 + {u}**2*{v} - (b + 1)*{u} + {scale}*({ends[0][0]} - 2*{u} + {ends[0][1]})")
        rates.append(f"b*{u} - {u}**2*{v} + {scale}*({ends[1][0]} - 2*{v} + {ends[1][1]})")
    return f"[{', '.join(rates[::2] + rates[1::2])}]"


_POINTS = 8
STIFF = {
    "ROBER": InitialValueProblem(
        [1.0, 0.0, 0.0],
        "[-k*y[0] + m*y[1]*y[2], k*y[0] - m*y[1]*y[2] - n*y[1]**2, n*y[1]**2]",
        {"k": 0.04, "m": 1e4, "n": 3e7}, 1e11,
    ),
    "VDPOL": InitialValueProblem([2.0, 0.0], "[y[1], ((1 - y[0]**2)*y[1] - y[0])/e]", {"e": 1e-6}, 2.0),
    "OREGO": InitialValueProblem(
        [1.0, 2.0, 3.0],
        "[s*(y[1] + y[0]*(1 - q*y[0] - y[1])), (y[2] - (1 + y[0])*y[1])/s, w*(y[0] - y[2])]",
        {"s": 77.27, "q": 8.375e-6, "w": 0.161}, 360.0,
    ),
    "HIRES": InitialValueProblem(
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
        "[-a*y[0] + b*y[1] + c*y[2] + d, a*y[0] - 8.75*y[1], -10.03*y[2] + b*y[3] + 0.035*y[4],"
        "c*y[1] + a*y[2] - 1.12*y[3], -1.745*y[4] + b*y[5] + b*y[6],"
        "-k*y[5]*y[7] + 0.69*y[3] + a*y[4] - b*y[5] + 0.69*y[6], k*y[5]*y[7] - 1.81*y[6], -k*y[5]*y[7] + 1.81*y[6]]",
        {"a": 1.71, "b": 0.43, "c": 8.32, "d": 0.0007, "k": 280.0}, 321.8122,
    ),
    "STIFF-E5": InitialValueProblem(
        [1.76e-3, 0.0, 0.0, 0.0],
        "[-a*y[0] - b*y[0]*y[2], a*y[0] - m*y[1]*y[2], a*y[0] - b*y[0]*y[2] - m*y[1]*y[2] + c*y[3], b*y[0]*y[2] - c*y[3]]",
        {"a": 7.89e-10, "b": 1.1e7, "c": 1.13e3, "m": 1.13e9}, 1e3,
    ),
    "POLLU": InitialValueProblem(
        [0, 0.2, 0, 0.04, 0, 0, 0.1, 0.3, 0.01, 0, 0, 0, 0, 0, 0, 0, 0.007, 0, 0, 0],
        _pollution(),
        {f"k{i}": rate for i, (rate, _, _) in enumerate(_REACTIONS, 1)}, 60.0,
    ),
    "BRUSS": InitialValueProblem(
        [*(1 + math.sin(2 * math.pi * i / (_POINTS + 1)) for i in range(1, _POINTS + 1)), *[3.0] * _POINTS],
        _brusselator(_POINTS), {"b": 3.0, "d": 0.02}, 10.0,
    ),
}  # fmt: skip

PROBLEMS = {**SMOOTH, **STIFF}
