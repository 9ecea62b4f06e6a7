"""Compares the digits that rounding warnings claim with proved digits, for random programs with cancellation.

`python -m tests.rounding_estimates --count 10000 --seed 0` prints each program for which a warning claims more digits
than `--certify` proves, or which loses more than half of the digits without a warning, and the shares of missing and
unfounded warnings. `--plain` uses programs without cancellation, none of which may be warned of.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.evaluation import session
from gradcli.language.syntax import parse
from gradcli.proofs import certify

# A number with fewer correct digits has lost more than half of them: 2**-26 is 1.5e-8.
HALF = 7
# With at least this many, less than half are lost, even with the error of an estimate.
_GOOD = 9

# Differences of almost equal numbers: for large u, for small u, and for any u.
_LARGE = (
    *("sqrt({u}**2 + 1) - {u}", "(1 + 1/{u})**{u} - e", "log({u} + 1) - log({u})", "atan({u}) - pi/2"),
    *("{u}/({u} + 1) - 1", "({u} + 1)**2/{u}**2 - 1", "cbrt({u} + 1) - cbrt({u})", "1/({u} - 1) - 1/{u}"),
    *("sqrt({u}) - sqrt({u} - 1)", "{u}*log(1 + 1/{u}) - 1", "hypot({u}, 2) - {u}", "({u} + 1/{u}) - {u}"),
)
_SMALL = (
    *("exp({u}) - 1 - {u}", "1 - cos({u})", "sin({u}) - {u}", "tan({u}) - sin({u})", "log(1 + {u}) - {u}"),
    *("sqrt(1 + {u}) - 1 - {u}/2", "asinh({u}) - {u}", "1/(1 + {u}) - 1/(1 - {u})", "exp({u}) - exp(-{u})"),
    *("cosh({u}) - cos({u})", "sqrt(4 + {u}) - 2", "atan({u}) - tanh({u})", "(1 + {u})**3 - 1 - 3*{u}"),
)
_ANYWHERE = (
    *("sin({u} + {h}) - sin({u})", "exp({u} + {h}) - exp({u})", "({u} + {h})**3 - {u}**3", "{a}*{u} - {b}*{u}"),
    *("log({u} + {h}) - log({u})", "{a}/(2 + {u}) - {b}/(2 + {u} + {h})", "{a}*{u}**2 - {b}*{u}*({u} + {h})"),
    *("({u} - 1)*({u} - 3) - ({u}**2 - 4*{u} + 3)", "atan({u} + {h}) - atan({u})", "sqrt({u} + {h}) - sqrt({u})"),
    *("{a}/(3 + 2*{u}) + {a}*log(3 + 2*{u}) - {b}*log(3 + 2*{u} + {h}) - {a}/(3 + 2*{u} + {h})",),
)
# Contexts of the difference d.
_AROUND = (
    "d",
    "x*d",
    "d/x",
    "x**2*d",
    "d/x**2",
    "d + {c}",
    "{c}*d + x",
    "exp(d)",
    "sqrt(d**2 + {c})",
    "d**2",
    "sin(d)",
    "1/d",
)
_INNER = ("x", "x", "x", "2*x", "x**2", "x/3", "sqrt(x)", "1/x")
# Programs of positive numbers, without cancellation.
_PLAIN = (
    *("x", "{c}", "exp({p})", "log(1 + {p})", "sqrt({p})", "{p} + {q}", "{p}*{q}", "{p}/(1 + {q})", "tanh({p})"),
    *("atan({p})", "sinh({p})", "{p}**2", "{p}**{c}", "hypot({p}, {q})", "asinh({p})", "erf({p})", "exp(-{p})"),
)
# The share of programs with tensors.
_SEVERAL = 0.2


class Program(NamedTuple):
    """A program of one or several numbers, with their values."""

    text: str
    x: float | list[float]


def cancelling(random: Random) -> Program:
    """A program that subtracts almost equal numbers."""
    where = random.choice(("large", "small", "anywhere"))
    exponent = {"large": (2, 9), "small": (-9, -1), "anywhere": (-2, 2)}[where]
    x = _number(random, *exponent)
    several = random.random() < _SEVERAL
    inner = random.choice(_INNER[:5] if where == "anywhere" else _INNER[:-1])
    a = _number(random, 0, 3)
    b = a * (1 + random.choice((0.0, 1.0)) * 10 ** random.uniform(-15, -3))
    template = random.choice({"large": _LARGE, "small": _SMALL, "anywhere": _ANYWHERE}[where])
    difference = template.format(u=_wrapped(inner), h=repr(10 ** random.uniform(-14, -3)), a=repr(a), b=repr(b))
    around = random.choice(_AROUND).format(c=repr(_number(random, -1, 2)))
    if several:
        return Program(f"d = {difference}; sum({around})", [x, _number(random, *exponent), _number(random, *exponent)])
    return Program(f"d = {difference}; {around}", x)


def plain(random: Random) -> Program:
    """A program of positive numbers without subtraction."""
    return Program(_positive(random, 3), _number(random, -2, 0.5))


def _positive(random: Random, depth: int) -> str:
    if not depth:
        return "x"
    p, q = (_wrapped(_positive(random, depth - 1)) for _ in range(2))
    return random.choice(_PLAIN).format(p=p, q=q, c=repr(_number(random, -1, 0.3)))


def _wrapped(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _number(random: Random, lowest: float, highest: float) -> float:
    """A number between two powers of ten, with few or many digits."""
    number = 10 ** random.uniform(lowest, highest)
    return float(f"{number:.{random.choice((1, 3, 17))}g}")


class Estimate(NamedTuple):
    """The digits of one number that a warning claims, and those that are proved; None without a warning or a proof."""

    program: Program
    name: str
    number: Any
    warned: int | None
    proved: int | None

    def __str__(self) -> str:
        return f"{self.program.text}  x={self.program.x!r}  {self.name} {self.number!r}: {self.warned} {self.proved}"


def estimates(program: Program) -> Iterator[Estimate]:
    """The estimates of the value and the gradient. Raises what the program raises."""
    request = session.EvaluationRequest(parse(program.text), {"x": arrays.asarray(program.x, "float64")}, ("x",))
    result = session.run(request)
    if not result.finite or result.grad is None or result.grad["x"] is None:
        return
    told: dict[str, int] = {}
    for warning in result.warnings:
        if warning.code == "inaccurate":
            told |= {name: digits or 0 for name, digits in (warning.digits or {}).items()}
    certify.certify(request, result)
    proved: Mapping[str, Any] = result.certified or {}
    yield Estimate(program, "value", float(result.value), told.get("value"), proved["value"])
    yield Estimate(program, "x", result.grad["x"], told.get("x"), (proved.get("grad") or {}).get("x"))


def kind(estimate: Estimate) -> str:
    """The classification of an estimate."""
    warned, proved = estimate.warned, estimate.proved
    if proved is None:
        return "unproved"
    if warned is None:
        return "missing" if proved < HALF else "silent"
    return "exceeds" if warned > proved else "groundless" if proved >= _GOOD else "warned"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    random, counts = Random(options.seed), Counter[str]()
    for _ in range(options.count):
        program = (plain if options.plain else cancelling)(random)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [*estimates(program)]
        except GradcliError as error:
            counts[f"error: {error.kind}"] += 1
            continue
        for estimate in found:
            counts[kind(estimate)] += 1
            if kind(estimate) in ("missing", "exceeds", "groundless"):
                print(kind(estimate), estimate)
    print(dict(counts))


if __name__ == "__main__":
    main()
