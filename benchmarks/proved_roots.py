"""Prove all roots of published systems in boxes, and compare their numbers with the published ones.

    python benchmarks/proved_roots.py [NAME]...

The systems are those of benchmarks of interval solvers: of COPRIN (http://www-sop.inria.fr/coprin/logiciels/ALIAS), which are
those of IBEX's `benchs/solver` too; of J. J. Moré, B. S. Garbow, K. E. Hillstrom, Testing Unconstrained Optimization Software
(1981); P. Van Hentenryck, D. McAllester, D. Kapur, Solving Polynomial Systems Using a Branch and Prune Approach (1997); M. W.
Smiley, C. Chun, J. Comput. Appl. Math. 137 (2001); C. A. Floudas et al., Handbook of Test Problems (1999); and of the tests
and issues of IntervalRootFinding.jl. Where a number of multiple roots is given, they must lie in boxes that are left, of
which none may be claimed to have a root. A search ends at gradcli's default limits; seconds are CPU time.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

from gradcli.models import solve


class System(NamedTuple):
    """Equations in a box: how many simple roots they have, and the multiple roots and poles, for one unknown, that boxes
    must be left for."""

    equations: str
    box: dict[str, tuple[float, float]]
    simple: int
    left: tuple[float, ...] = ()


def names(n: int) -> list[str]:
    return [f"x{k}" for k in range(1, n + 1)]


def cube(n: int, low: float, high: float) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(names(n), (low, high))


def broyden_tridiagonal(n: int) -> str:
    x = ["0", *names(n), "0"]
    return "; ".join(f"(3 - 2*{x[k]})*{x[k]} - {x[k - 1]} - 2*{x[k + 1]} + 1" for k in range(1, n + 1))


def broyden_banded(n: int) -> str:
    x = names(n)

    def others(k: int) -> str:
        return " + ".join(f"{x[j]}*(1 + {x[j]})" for j in range(max(0, k - 5), min(n, k + 2)) if j != k)

    return "; ".join(f"{x[k]}*(2 + 5*{x[k]}**2) + 1 - ({others(k)})" for k in range(n))


def brown(n: int) -> str:
    x = names(n)
    return "; ".join([*(f"{each} + {' + '.join(x)} - {n + 1}" for each in x[:-1]), "*".join(x) + " - 1"])


def boundary_value(n: int) -> str:
    x, h = ["0", *names(n), "0"], f"(1/{n + 1})"
    return "; ".join(
        f"2*{x[k]} - {x[k - 1]} - {x[k + 1]} + {h}**2*({x[k]} + {k}*{h} + 1)**3/2" for k in range(1, n + 1)
    )


def integral_equation(n: int) -> str:
    x, h = names(n), f"(1/{n + 1})"
    cubes = [f"({each} + {k}*{h} + 1)**3" for k, each in enumerate(x, 1)]
    found = []
    for i, each in enumerate(x, 1):
        below = " + ".join(f"{j}*{h}*{cubes[j - 1]}" for j in range(1, i + 1))
        above = " + ".join(f"(1 - {j}*{h})*{cubes[j - 1]}" for j in range(i + 1, n + 1)) or "0"
        found.append(f"{each} + {h}*((1 - {i}*{h})*({below}) + {i}*{h}*({above}))/2")
    return "; ".join(found)


def bratu(n: int) -> str:
    x, h = ["0", *names(n), "0"], f"(1/{n + 1})"
    return "; ".join(f"{x[k - 1]} - 2*{x[k]} + {x[k + 1]} + {h}**2*exp({x[k]})" for k in range(1, n + 1))


def troesch(n: int) -> str:
    x, h = ["0", *names(n), "1"], f"(1/{n + 1})"
    return "; ".join(f"{x[k - 1]} - 2*{x[k]} + {x[k + 1]} - 10*{h}**2*sinh(10*{x[k]})" for k in range(1, n + 1))


def economics(n: int) -> str:
    x = names(n)
    found = []
    for k in range(1, n):
        pairs = " + ".join([x[k - 1], *(f"{x[i]}*{x[i + k]}" for i in range(n - 1 - k))])
        found.append(f"({pairs})*{x[-1]} - {k}")
    return "; ".join([*found, " + ".join(x[:-1]) + " + 1"])


def katsura(n: int) -> str:
    x = names(n + 1)

    def at(k: int) -> str | None:
        return x[abs(k)] if abs(k) <= n else None

    found = []
    for m in range(n):
        terms = [f"{at(i)}*{at(m - i)}" for i in range(-n, n + 1) if at(m - i)]
        found.append(" + ".join(terms) + f" - {x[m]}")
    return "; ".join([*found, f"{x[0]} + " + " + ".join(f"2*{each}" for each in x[1:]) + " - 1"])


def cyclic(n: int) -> str:
    x = names(n)
    found = [" + ".join("*".join(x[(i + j) % n] for j in range(k)) for i in range(n)) for k in range(1, n)]
    return "; ".join([*found, "*".join(x) + " - 1"])


def reimer(n: int) -> str:
    x = names(n)
    return "; ".join(
        "-1 + " + " + ".join(f"{'-' if j % 2 else ''}2*{x[j]}**{k}" for j in range(n)) for k in range(2, n + 2)
    )


def trigexp(n: int) -> str:
    x = names(n)
    first = f"3*{x[0]}**3 + 2*{x[1]} - 5 + sin({x[0]} - {x[1]})*sin({x[0]} + {x[1]})"
    last = f"-{x[-2]}*exp({x[-2]} - {x[-1]}) + 4*{x[-1]} - 3"
    inner = [
        f"-{x[k - 1]}*exp({x[k - 1]} - {x[k]}) + {x[k]}*(4 + 3*{x[k]}**2) + 2*{x[k + 1]} + sin({x[k]} - {x[k + 1]})"
        f"*sin({x[k]} + {x[k + 1]}) - 8"
        for k in range(1, n - 1)
    ]
    return "; ".join([first, *inner, last])


def freudenstein(n: int) -> str:
    x = names(n)
    return "; ".join(
        f"-13 + {a} + ((5 - {b})*{b} - 2)*{b}; -29 + {a} + (({b} + 1)*{b} - 14)*{b}" for a, b in zip(x[::2], x[1::2])
    )


def roots_of_unity(n: int) -> str:
    real = " + ".join(f"{math.comb(n, k) * (-1) ** (k // 2)}*x**{n - k}*y**{k}" for k in range(0, n + 1, 2))
    imaginary = " + ".join(f"{math.comb(n, k) * (-1) ** (k // 2)}*x**{n - k}*y**{k}" for k in range(1, n + 1, 2))
    return f"{real} - 1; {imaginary}"


MOORE_JONES = (
    "x1 - 0.25428722 - 0.18324757*x4*x3*x9; x2 - 0.37842197 - 0.16275449*x1*x10*x6; "
    "x3 - 0.27162577 - 0.16955071*x1*x2*x10; x4 - 0.19807914 - 0.15585316*x7*x1*x6; "
    "x5 - 0.44166728 - 0.19950920*x7*x6*x3; x6 - 0.14654113 - 0.18922793*x8*x5*x10; "
    "x7 - 0.42937161 - 0.21180486*x2*x5*x8; x8 - 0.07056438 - 0.17081208*x1*x7*x6; "
    "x9 - 0.34504906 - 0.19612740*x10*x6*x8; x10 - 0.42651102 - 0.21466544*x4*x8*x1"
)
KINEMATICS = (
    "x1**2 + x2**2 - 1; x3**2 + x4**2 - 1; x5**2 + x6**2 - 1; x7**2 + x8**2 - 1; "
    "0.004731*x1*x3 - 0.3578*x2*x3 - 0.1238*x1 - 0.001637*x2 - 0.9338*x4 + x7 - 0.3571; "
    "0.2238*x1*x3 + 0.7623*x2*x3 + 0.2638*x1 - 0.07745*x2 - 0.6734*x4 - 0.6022; "
    "x6*x8 + 0.3578*x1 + 0.004731*x2; -0.7623*x1 + 0.2238*x2 + 0.3461"
)
CAPRASSE = (
    "y**2*z + 2*x*y*t - 2*x - z; -x**3*z + 4*x*y**2*z + 4*x**2*y*t + 2*y**3*t + 4*x**2 - 10*y**2 + 4*x*z - 10*y*t + 2; "
    "2*y*z*t + x*t**2 - x - 2*z; -x*z**3 + 4*y*z**2*t + 4*x*z*t**2 + 2*y*t**3 + 4*x*z + 4*z**2 - 10*y*t - 10*t**2 + 2"
)
CYCLOHEXANE = (
    "-y**2*z**2 - y**2 + 24*y*z - z**2 - 13; -x**2*z**2 - x**2 + 24*x*z - z**2 - 13; "
    "-x**2*y**2 - x**2 + 24*x*y - y**2 - 13"
)
SMILEY_52 = (
    "(x**2 + y**2 + z**2 - 1)*(x**2 + y**2 + z**2 - 4); (0.5*x + 0.5*y + z - 0.2)*(0.5*x + 0.5*y + z + 0.7); "
    + "*".join(
        f"((-0.5*(0.5*cos({t}) + 0.5*sin({t})) - sin({t}))*x + (cos({t}) + 0.5*(0.5*cos({t}) + 0.5*sin({t})))*y"
        f" + (0.5*sin({t}) - 0.5*cos({t}))*z - 0.2*(0.5*sin({t}) - 0.5*cos({t})))"
        for t in ("pi/3", "2*pi/3", "pi")
    )
)


def one(equation: str, low: float, high: float, simple: int, left: tuple[float, ...] = ()) -> System:
    return System(equation, {"x": (low, high)}, simple, left)


def two(equations: str, low: float, high: float, simple: int) -> System:
    return System(equations, dict.fromkeys("xy", (low, high)), simple)


SYSTEMS = {
    "BroydenTri-5": System(broyden_tridiagonal(5), cube(5, -1e8, 1e8), 2),
    "BroydenTri-10": System(broyden_tridiagonal(10), cube(10, -1e8, 1e8), 2),
    "BroydenBanded-5": System(broyden_banded(5), cube(5, -1e8, 1e8), 1),
    "BroydenBanded-10": System(broyden_banded(10), cube(10, -1e8, 1e8), 1),
    "BroydenBanded-20": System(broyden_banded(20), cube(20, -1e8, 1e8), 1),
    "Brown-4": System(brown(4), cube(4, -1e8, 1e8), 2),
    "Brown-5": System(brown(5), cube(5, -1e8, 1e8), 3),
    "Brown-7": System(brown(7), cube(7, -1e8, 1e8), 3),
    "DiscreteBoundary-5": System(boundary_value(5), cube(5, -100, 100), 1),
    "DiscreteBoundary-10": System(boundary_value(10), cube(10, -100, 100), 1),
    "DiscreteIntegral-5": System(integral_equation(5), cube(5, -4, 5), 1),
    "DiscreteIntegral-9": System(integral_equation(9), cube(9, -4, 5), 1),
    "Bratu-5": System(bratu(5), cube(5, -1e8, 20), 2),
    "Bratu-10": System(bratu(10), cube(10, -1e8, 20), 2),
    "Troesch-9": System(troesch(9), cube(9, -1e8, 1e8), 1),
    "Eco-5": System(economics(5), cube(5, -100, 100), 4),
    "Eco-6": System(economics(6), cube(6, -100, 100), 4),
    "Katsura-4": System(katsura(4), cube(5, -1, 1), 12),
    "Katsura-5": System(katsura(5), cube(6, -1, 1), 16),
    "Cyclic-5": System(cyclic(5), cube(5, -10, 10), 10),
    "Reimer-4": System(reimer(4), cube(4, -1, 1), 8),
    "Reimer-5": System(reimer(5), cube(5, -1, 1), 24),
    "Trigexp1-5": System(trigexp(5), cube(5, -100, 100), 1),
    "Trigexp1-10": System(trigexp(10), cube(10, -100, 100), 1),
    "ExtendedFreud-2": System(freudenstein(2), cube(2, -1e8, 1e8), 1),
    "ExtendedFreud-10": System(freudenstein(10), cube(10, -1e8, 1e8), 1),
    "MooreJones": System(MOORE_JONES, cube(10, -2, 2), 1),
    "Kinematics": System(KINEMATICS, cube(8, -1, 1), 16),
    "Caprasse": System(CAPRASSE, dict.fromkeys("xyzt", (-10, 10)), 18),
    "Cyclohexane": System(CYCLOHEXANE, dict.fromkeys("xyz", (-1e5, 1e5)), 16),
    "Smiley-2.2": two("x**2 + 4*y**2 - 4; y*(x - 1.995)*(y - x**2)*(y - x + 1)", -3, 3, 8),
    "Smiley-5.2": System(SMILEY_52, dict.fromkeys("xyz", (-3, 3)), 24),
    "Smiley-5.4": System(
        "1.069e-5*x**4 + 2e2*x**3*y + 1e5*x**3 - 1.8e5*x - 1.283e-4; 2e-2*x*y**2 + 1e1*y**2 - 1e1",
        {"x": (-510, 1.4), "y": (-510, 1.1)},
        7,
    ),
    "Himmelblau": two("4*x*(x**2 + y - 11) + 2*(x + y**2 - 7); 2*(x**2 + y - 11) + 4*y*(x + y**2 - 7)", -1e8, 1e8, 9),
    "Rosenbrock": two("-2*(1 - x) - 400*x*(y - x**2); 200*(y - x**2)", -1e8, 1e8, 1),
    "PowellBadlyScaled": two("10000*x*y - 1; exp(-x) + exp(-y) - 1.0001", 0, 100, 2),
    "BullardBiegler": System(
        "10000*x*y - 1; exp(-x) + exp(-y) - 1.001", {"x": (5.49e-6, 4.553), "y": (0.0021961, 18.21)}, 1
    ),
    "FerrarisTronconi": System(
        "0.5*sin(x*y) - 0.25*y/pi - 0.5*x; (1 - 0.25/pi)*(exp(2*x) - exp(1)) + exp(1)*y/pi - 2*exp(1)*x",
        {"x": (0.25, 1), "y": (1.5, 6.283)},
        2,
    ),
    "UnitRoots-3": two(roots_of_unity(3), -1e3, 1e3, 3),
    "UnitRoots-5": two(roots_of_unity(5), -1e3, 1e3, 5),
    "UnitRoots-8": two(roots_of_unity(8), -1e3, 1e3, 8),
    "Circles": two("x**2 + y**2 - 1; (x - 1)**2 + y**2 - 1", -1e8, 1e8, 2),
    "Sphere": System("x**2 + y**2 + z**2 - 1; y - 2*x; z - 2*x", dict.fromkeys("xyz", (-6, 6)), 2),
    "Squares": two("x**2 - 1; y**2 - 5", -10, 10, 4),
    # The tests and the issues (numbers in the names) of IntervalRootFinding.jl.
    "Julia-sine": one("sin(x)", -5, 5, 3),
    "Julia-cosine": one("cos(x)", -7.5, 7.5, 4),
    "Julia-W7": one("*".join(f"(x - {k})" for k in range(1, 8)), -10, 10, 7),
    "Julia-asin": one("asin(sin(x)) - 0.1", 0, 1, 1),
    "Julia-domain": one("sqrt(x**2 - 4) - 2", -20, 20, 2),
    "Julia-reciprocals": one("cos(x)*sin(1/x)", 0.05, 1, 6),
    "Julia-multiple": one("(x - 1)*(x**2 - 2)**3*(x**3 - 2)**4", -5, 5, 1, (-(2**0.5), 2 ** (1 / 3), 2**0.5)),
    "Julia-Burden": one("exp(x) - x - 1", -5, 5, 0, (0.0,)),
    "Julia-48": one("sin(x) - x", -10, 11, 0, (0.0,)),
    "Julia-49": one("(x**2 - 2)**2", -10, 11, 0, (-(2**0.5), 2**0.5)),
    "Julia-49-Hansen": one("4567*x**2 - 9134*x + 4567", -10, 11, 0, (1.0,)),
    "Julia-74": one("exp(x**2) - cos(x)", -10, 10, 0, (0.0,)),
    "Julia-75": one("(x**2 - 1)**4*(x**2 - 2)**4", -10, 10, 0, (-(2**0.5), -1.0, 1.0, 2**0.5)),
    "Julia-131": one("1/(1/((1 - x)*(1 + x)))", -10, 10, 0, (-1.0, 1.0)),
    "Julia-141": one("x**2 - (1 - cos(x))", -0.5, 0.5, 0, (0.0,)),
    "Julia-162": one("tan(sqrt(2*x)) + sqrt(x/(3*pi**2 - x))", 0, 29, 2, (0.0, 1.2337005501, 11.1033049512)),
    "Julia-195": one("2*cos(x)**2 - 5*cos(x)**2 + 3", -0.1, 6.4, 0, (0.0, math.pi, 2 * math.pi)),
    "Julia-logarithm": two("log(y/x) + 3*x; y - 2*x", -100, 100, 1),
}


def proved(system: System) -> tuple[str, Any, float]:
    """Whether the result agrees with what is published, the result, and the CPU time."""
    begin = time.process_time()
    found = solve(system.equations, bracket=system.box, all=True, prove=True)
    proof = found.proof
    assert proof is not None
    spent = time.process_time() - begin
    inside = [any(each["x"][0] <= place <= each["x"][1] for each in proof.left) for place in system.left]
    if len(found.roots) > system.simple or not all(inside):
        return "WRONG", found, spent
    if len(found.roots) < system.simple:
        return ("WRONG" if proof.complete else "open"), found, spent
    # Boxes may be left where a root is multiple, or at a pole.
    return ("all" if proof.complete or system.left else "left"), found, spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    verdicts = []
    for name, system in SYSTEMS.items():
        if asked.names and name not in asked.names:
            continue
        verdict, found, spent = proved(system)
        verdicts.append(verdict)
        print(
            f"{name:20} {len(system.box):3} unknowns  {len(found.roots):3} of {system.simple:3} roots  {verdict:5} "
            f"{len(found.proof.left):4} left {found.proof.boxes:8} boxes {spent:6.1f} s",
            flush=True,
        )
    counts = {each: verdicts.count(each) for each in ("all", "left", "open", "WRONG")}
    print(f"{len(verdicts)} systems: " + ", ".join(f"{count} {each}" for each, count in counts.items()))


if __name__ == "__main__":
    main()
