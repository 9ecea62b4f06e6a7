"""Compares certified digits of random programs, and of those of the conformance file, with an independent judge.

`python -m tests.certify --count 10000 --seed 0` generates programs like the fuzzer and checks the certified digits of
each value, derivative by one leaf, and second derivative or Jacobian: where k digits are certified, mpmath with 60
digits or more must confirm that k are right, and for k < 16 that no more than k + 2 are. `--first I --count 1` repeats
one. Programs for which the judge lacks functions or digits are counted with the reason, and so are points without a
derivative.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

import gradcli
from gradcli.errors import GradcliError
from gradcli.language.names.resolution import resolve
from gradcli.proofs.certify import Certified
from tests.fuzz.case import Case
from tests.fuzz.writer import Writer
from tests.judge import Judge, NotJudgedError
from tests.judge.functions import numeric

CONFORMANCE = Path(__file__).parent / "data/torch-float64.jsonl"
# The precision of the judge's first attempt, twice the digits that it compares.
_DIGITS = 120
# With fewer certified digits the judge increases its precision until the result does not change.
_FEW = 10
_MOST_ENTRIES = 16
_MOST_OF_SECOND_ORDER = 3


class Claim(NamedTuple):
    """The number of certified digits of some numbers; `places` are the elements of leaves by which they are
    derivatives, along the last axes in order."""

    name: str
    found: Any
    digits: int
    places: Sequence[Sequence[tuple[str, tuple[int, ...]]]]


def claims(case: Case) -> Iterator[Claim]:
    """The certified results of a program. Raises what the program raises, and NotJudgedError if nothing is
    certified."""
    program = gradcli.compile(case.program)
    given = {name: value for name, value in case.arrays().items() if name in program.inputs}
    entries = sum(np.size(value) for value in given.values())
    value = program(**given)
    several = np.shape(value) != ()
    second = not several and entries <= _MOST_OF_SECOND_ORDER
    found = program.certify(given, order=2 if second else None, jacobian=several)
    yield from _claims(found, given, several)


def _claims(found: Certified, given: Mapping[str, Any], several: bool) -> Iterator[Claim]:
    digits = found.digits
    if digits["value"] is not None:
        yield Claim("value", found.value, digits["value"], [()])
    for part, numbers in (("jacobian" if several else "grad", found), ("derivatives", found)):
        for name, array in (getattr(numbers, part) or {}).items():
            leaves = name.split(",")
            proved = digits[part][name]
            if array is None or proved is None or math.prod(np.size(given[n]) for n in leaves) > _MOST_ENTRIES:
                continue
            ranges = [[(n, place) for place in np.ndindex(*np.shape(given[n]))] for n in leaves]
            yield Claim(name, array, proved, [*itertools.product(*ranges)])


def judged(judge: Judge, claim: Claim) -> str:
    """The judge's verdict on a claim: "confirmed", or what is wrong."""
    if not np.size(claim.found):
        raise NotJudgedError("nothing to judge")
    found = np.asarray(claim.found, object).reshape(-1, len(claim.places))
    verdict = ""
    for digits in (_DIGITS, 0) if claim.digits >= _FEW else (0,):
        verdict = _verdict(judge, claim, found, digits)
        if verdict == "confirmed":
            return verdict
    smooth = all(judge.is_smooth(places[: k + 1]) for places in claim.places for k in range(len(places)))
    return verdict if smooth else "no derivative here"


def _verdict(judge: Judge, claim: Claim, found: Any, digits: int) -> str:
    worst, has_zeros = 16, False
    for column, places in zip(found.T, claim.places):
        truth = judge.derivative(places, digits) if places else judge.value(digits)
        numbers = np.ravel(np.asarray(numeric(truth), object))
        if digits and not all(numbers):
            # Infinitely many zero digits need a higher precision.
            return "0 with few digits"
        if len(numbers) != len(column):
            return "WRONG: another shape"
        worst = min([worst, *map(correct_digits, column, numbers)])
        has_zeros |= not all(numbers)
    if worst < claim.digits:
        return f"WRONG: {claim.digits} digits of {claim.name} are certified, and {worst} are right"
    if claim.digits < 16 and worst > claim.digits + 2 and has_zeros:
        raise NotJudgedError("0, or a number that is too small for the judge")
    if claim.digits < 16 and worst > claim.digits + 2:
        return f"MODEST: {claim.digits} digits of {claim.name} are certified, and {worst} are right"
    return "confirmed"


def correct_digits(found: Any, exact: Any) -> int:
    """The number of correct digits of a float. Raises NotJudgedError for infinities."""
    if not mpmath.isfinite(exact):
        raise NotJudgedError("no finite number")
    if not math.isfinite(found):
        return 0
    error = abs(mpf(float(found)) - exact)
    if error == 0:
        return 16
    return 0 if exact == 0 else min(16, max(0, int(mpmath.floor(-mpmath.log10(error / abs(exact))))))


class Tally:
    """Counts the outcomes of programs and claims; each program is limited to `seconds`."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.seconds = seconds
        self.programs = 0
        self.errors: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.digits: Counter[int] = Counter()
        self.wrong: list[tuple[Case, str]] = []

    def add(self, case: Case) -> None:
        self.programs += 1
        before = signal.signal(signal.SIGVTALRM, too_long)
        # Repeated, because mpmath catches exceptions.
        signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds, 1.0)
        try:
            self._claims(case)
        except (GradcliError, NotJudgedError, NotImplementedError) as error:
            self.errors[_short(error)] += 1
        except Exception as error:
            self.wrong.append((case, f"CRASH: {_short(error)} {traceback.extract_tb(error.__traceback__)[-1]}"))
            self.errors[f"CRASH: {_short(error)}"] += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    def _claims(self, case: Case) -> None:
        made = [*claims(case)]
        judge = Judge(gradcli.compile(case.program).program, case.bindings)
        by_clauses = bool(resolve(judge.program).with_backward)
        for claim in made:
            if by_clauses and claim.name != "value":
                # The judge derives functions, not user-defined backward clauses.
                continue
            try:
                verdict = judged(judge, claim)
            except NotJudgedError as error:
                verdict = f"not judged: {_short(error)}"
            self.verdicts[verdict if verdict in ("confirmed", "no derivative here") else _kind(verdict)] += 1
            if verdict == "confirmed":
                self.digits[claim.digits] += 1
            if verdict.startswith(("WRONG", "MODEST")):
                self.wrong.append((case, verdict))

    def report(self) -> str:
        lines = [f"{self.programs:,} programs; {self.verdicts['confirmed']:,} claims confirmed"]
        lines += [f"  {digits:2} digits: {n:,}" for digits, n in sorted(self.digits.items())]
        lines += [f"{n:6,} claims: {what}" for what, n in self.verdicts.most_common() if what != "confirmed"]
        lines += [f"{n:6,} programs: {what}" for what, n in self.errors.most_common(20)]
        return "\n".join(lines)


def _kind(verdict: str) -> str:
    return verdict if verdict.startswith("not judged") else verdict.partition(":")[0]


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:90]


def too_long(_number: int, _frame: Any) -> None:
    raise NotJudgedError("too long")


def random_case(seed: int, i: int) -> Case:
    return Writer(Random(f"certify/{seed}/{i}")).case()


def conformance() -> Iterator[Case]:
    for line in CONFORMANCE.read_text().splitlines():
        record = json.loads(line)
        yield Case.of_line(json.dumps({"program": record["program"], "bindings": record["bindings"]}))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.certify", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many random programs (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")
    parser.add_argument("--conformance", action="store_true", help="the programs of the conformance file instead")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to look at one (default: 10)")
    parser.add_argument("--verbose", action="store_true", help="name each program before it is looked at")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    cases = conformance() if options.conformance else (random_case(options.seed, i) for i in numbers)
    tally, started = Tally(options.seconds), time.monotonic()
    warnings.simplefilter("ignore")
    for i, case in enumerate(cases, options.first):
        if options.verbose:
            print(i, case.line(), flush=True)
        before = len(tally.wrong)
        tally.add(case)
        for _, verdict in tally.wrong[before:]:
            print(f"--- program {i}: {verdict}\n{case.line()}", flush=True)
    print(f"{tally.report()}\n{time.monotonic() - started:,.0f} s", flush=True)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
