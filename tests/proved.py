"""Compares every stored reference of the tests with proved digits.

`python -m tests.proved` goes through the data files, prints disagreements, and counts what agrees and what cannot be
proved, with the reason. `--every N` checks each N-th point only, `--file NAME` a single file. References from mpmath
and SymPy must be right to one unit of their last digit, and those from PyTorch to the tolerance of their test.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli.errors import GradcliError
from gradcli.evaluation.session import EvaluationRequest
from gradcli.proofs import certify, digits
from tests import whole_domain

_DATA = Path(__file__).parent / "data"
# The digits that a ball must have, and the largest precision; a number without any digits at that precision may be 0.
_DIGITS, _MOST_DIGITS = 30, 2000
# Numbers from this one on round to infinity in float64.
_INFINITE = Fraction(2**1024 - 2**970)
_NONE = Fraction(1, 10**90)


class Reference(NamedTuple):
    """The reference numbers for a program at a point, as decimals or floats by key ("value", "x", "x,x"), nested lists
    for arrays; `error` gives the tolerance of a number."""

    program: str
    point: Mapping[str, Any]
    numbers: Mapping[str, Any]
    error: Callable[[Any], Fraction]
    order: int = 1
    cotangent: Any = None

    @property
    def wrt(self) -> tuple[str, ...]:
        return tuple(name for name in self.point if name in self.numbers)


def exact(reference: Reference) -> Mapping[str, Any]:
    """The numbers of a reference as balls, by the same keys. Raises what the program raises."""
    program = gradcli.compile(reference.program)
    request = EvaluationRequest(
        program.program,
        {name: value for name, value in reference.point.items() if name in program.inputs},
        [name for name in reference.wrt if name in program.inputs],
        order=reference.order if reference.order > 1 else None,
        grad_output=reference.cotangent,
    )
    with digits.computing(as_written=False):
        found, _ = digits.at_rising_precision(
            lambda: digits.at_precision(lambda: certify.in_balls(request)), _is_enough, _DIGITS, _MOST_DIGITS
        )
    return {"value": found.value, **(found.grad or {}), **(found.derivatives or {})}


def _is_enough(result: Any) -> bool:
    from gradcli.arrays.flint.balls import is_exact

    bits = digits.bits_of(_DIGITS)
    parts = [part for _, part in digits.members(result) if part is not None]
    numbers = [n for part in parts for n in (part.numbers.ravel() if part.shape else (part.numbers,))]
    return all(is_exact(n) or n.rel_accuracy_bits() >= bits - 40 for n in numbers)


def compared(reference: Reference) -> Iterator[tuple[str, str]]:
    """For each number by key: "agrees", "DISAGREES: …", or the reason why it is unknown."""
    from gradcli.arrays.flint.balls import precise

    balls = exact(reference)
    with precise(1000):
        for name, stored in reference.numbers.items():
            number = balls.get(name)
            if number is None:
                yield (
                    name,
                    "agrees" if stored is None or not np.any(np.asarray(stored, float)) else "DISAGREES: no derivative",
                )
                continue
            numbers = np.ravel(np.asarray(number.numbers, object))
            for text, ball in zip(np.ravel(np.asarray(stored, object)), numbers, strict=True):
                yield name, _verdict(text, ball, reference.error)


def _verdict(stored: Any, number: Any, error: Callable[[Any], Fraction]) -> str:
    from flint import arb, fmpq

    from gradcli.arrays.flint.balls import is_nan

    if stored is None or math.isnan(float(stored)):
        return "nan is stored"
    if is_nan(number):
        return "undefined as it stands"
    if math.isinf(float(stored)):
        large = number if float(stored) > 0 else -number
        right, wrong = large >= fmpq(_INFINITE.numerator), large < fmpq(_INFINITE.numerator)
    else:
        value, most = Fraction(stored), error(stored)
        distance = abs(arb(fmpq(value.numerator, value.denominator)) - number)
        bound = arb(fmpq(most.numerator, most.denominator))
        right, wrong = distance <= bound, distance > bound
    return (
        "agrees"
        if right
        else f"DISAGREES: {stored} is stored, and {number} proved"
        if wrong
        else "the ball is too wide"
    )


def rounded_once(stored: float) -> Fraction:
    return Fraction(math.ulp(stored)) * Fraction(500_001, 1_000_000)


def of_digits(count: int) -> Callable[[str], Fraction]:
    return lambda stored: abs(Fraction(stored)) * Fraction(1, 10 ** (count - 1)) or _NONE


def _whole_domain() -> Iterator[Reference]:
    stored = json.loads((_DATA / "whole-domain.json").read_text())
    for case in whole_domain.cases():
        for point, row in zip(case.points, stored[case.program], strict=True):
            named = dict(zip(("value", *case.names), row))
            yield Reference(case.program, dict(zip(case.names, point)), named, rounded_once)


def _of_orders(name: str, count: int) -> Iterator[Reference]:
    for case in json.loads((_DATA / name).read_text()):
        yield _series(case["program"], case["x"], case["derivatives"], count)


def _series(program: str, x: float, numbers: Sequence[str], count: int) -> Reference:
    named = {",".join(["x"] * k) or "value": number for k, number in enumerate(numbers)}
    return Reference(program, {"x": x}, named, of_digits(count), len(numbers) - 1)


def _mixed() -> Iterator[Reference]:
    for case in json.loads((_DATA / "mixed-derivatives.json").read_text()):
        yield Reference(case["program"], case["point"], case["derivatives"], of_digits(25), 4)


def _removable() -> Iterator[Reference]:
    for case in json.loads((_DATA / "removable-points.json").read_text()):
        # At the point itself the program as written has no value.
        for x, numbers in islice(case["derivatives"].items(), 1, None):
            yield _series(case["program"], float(x), numbers, 20)


def _of_pytorch() -> Iterator[Reference]:
    for line in (_DATA / "torch-float64.jsonl").read_text().splitlines():
        case = json.loads(line)
        point = {name: _numbers(value) for name, value in case["bindings"].items()}
        finite = [abs(v) for v in np.ravel(np.asarray(_numbers(case["value"]), float)) if np.isfinite(v)]
        scale = Fraction(max([1.0, *finite]))

        def error(stored: float, scale: Fraction = scale) -> Fraction:
            return abs(Fraction(stored)) / 10**9 + scale / 10**14

        given = {name: np.array(v) if isinstance(v, list) else v for name, v in point.items()}
        found = {"value": _numbers(case["value"])} | {n: _numbers(g) for n, g in case["grad"].items()}
        cotangent = _numbers(case.get("grad_output"))
        yield Reference(case["program"], given, found, error, 1, None if cotangent is None else np.array(cotangent))


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value


FILES: Mapping[str, Callable[[], Iterator[Reference]]] = {
    "whole-domain.json": _whole_domain,
    "high-orders.json": lambda: _of_orders("high-orders.json", 25),
    "lost-digits.json": lambda: _of_orders("lost-digits.json", 12),
    "mixed-derivatives.json": _mixed,
    "removable-points.json": _removable,
    "torch-float64.jsonl": _of_pytorch,
}


def tallied(references: Iterator[Reference], verbose: bool = False) -> tuple[Counter[str], list[str]]:
    """The number of references that agree, or not, by reason, and lines on those that disagree."""
    counts: Counter[str] = Counter()
    lines = []
    for reference in references:
        try:
            for name, verdict in compared(reference):
                kind = verdict.partition(":")[0]
                counts[kind] += 1
                if kind == "DISAGREES":
                    lines.append(f"{reference.program}  {dict(reference.point)}  {name}: {verdict}")
        except (GradcliError, NotImplementedError) as error:
            counts[f"not proved: {error}".partition("\n")[0][:100]] += len(reference.numbers)
            if verbose:
                print(reference.program, dict(reference.point), error, sep="  ")
    return counts, lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proved", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th point alone (default: all)")
    parser.add_argument("--file", choices=[*FILES], action="append", help="this data file (default: all)")
    parser.add_argument("--verbose", action="store_true", help="print what cannot be proved, too")
    options = parser.parse_args()
    wrong = False
    for name in options.file or FILES:
        started = time.monotonic()
        counts, lines = tallied(islice(FILES[name](), 0, None, options.every), options.verbose)
        print(f"{name}, {time.monotonic() - started:,.0f} s")
        print("".join(f"  {n:7,} {what}\n" for what, n in counts.most_common()), *lines, sep="\n", flush=True)
        wrong |= bool(lines)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
