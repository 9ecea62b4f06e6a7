"""Compares the certified digits of random programs of complex numbers with mpmath.

`python -m tests.fuzz.complex_certificates --count 1000` runs `gradcli eval --certify` on so many programs: of each the
derivatives of its value, those of a real readout of it up to order 2, and where it is not holomorphic those by its
inputs and their conjugates. Where k digits of a number are certified, mpmath must confirm that k are right, and for
k < 16 that no more than k + 2 are. `--first I --count 1` repeats one program. What is refused, or not certified, is
counted with its reason; the exit status is 1 where a claim is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.certify import correct_digits, too_long
from tests.fuzz import commands
from tests.fuzz.complex_meaning import EXACT, exact_inputs, moved
from tests.fuzz.complex_programs import ComplexProgram, complex_program
from tests.judge import NotJudgedError

# The decimal digits of the judge, and of its second attempt.
_DIGITS = (40, 90)
# Arrays have many second derivatives: the judge computes so many at most.
_MOST_ELEMENTS = 64
_WEIGHT = 0.8 - 0.6j

# An element of an input, and the axis along which it is moved: 1 or 1j.
Along = tuple[str, tuple[int, ...], complex]


class Claim(NamedTuple):
    """That `digits` digits of the worse part of each number in `found` are right: of the derivative by `name`."""

    name: str
    found: Any
    digits: int | None
    meaning: Meaning


class Meaning(NamedTuple):
    """Which numbers of a program a claim is about.

    `kind` is "value"; "slope", the derivative f'; "gradient", dL/da + i*dL/db; "by" and "by_conjugate", Wirtinger's
    derivatives; or "parts", the derivative along the axes of `names`.
    """

    kind: str
    names: tuple[tuple[str, complex], ...] = ()


class Judge:
    """What mpmath has for a program at its inputs, with `readout` for the real number L = real(weight*value)."""

    def __init__(self, program: ComplexProgram, readout: bool, digits: int) -> None:
        self.program = program
        self.readout = readout
        self.digits = digits
        # The largest number of the value or of a derivative.
        self.largest = mpmath.mpf(0)

    def numbers(self, meaning: Meaning) -> list[Any]:
        """The numbers of a claim, flattened, those of the value before those of the inputs. A part that may be an error
        of the differences is 0."""
        with mpmath.workdps(4 * self.digits):
            self.largest = max([mpmath.mpf(0), *map(mpmath.fabs, _flat(self._at(exact_inputs(self.program.inputs))))])
            return [self._without_errors(number) for number in self._numbers(meaning)]

    def _numbers(self, meaning: Meaning) -> list[Any]:
        if meaning.kind == "value":
            return _flat(self._at(exact_inputs(self.program.inputs)))
        if meaning.kind == "parts":
            return self._second(meaning.names)
        ((name, _),) = meaning.names
        columns = [self._by(meaning.kind, name, place) for place in np.ndindex(np.shape(self.program.inputs[name]))]
        return [number for row in zip(*columns) for number in row]

    def _by(self, kind: str, name: str, place: tuple[int, ...]) -> list[Any]:
        real = self._derivative([(name, place, 1.0)])
        if not np.iscomplexobj(self.program.inputs[name]) or kind == "slope":
            return real
        imaginary = self._derivative([(name, place, 1j)])
        if kind == "gradient":
            return [a + 1j * b for a, b in zip(real, imaginary)]
        sign = -1j if kind == "by" else 1j
        return [(a + sign * b) / 2 for a, b in zip(real, imaginary)]

    def _second(self, names: Sequence[tuple[str, complex]]) -> list[Any]:
        places = [
            [(name, place, axis) for place in np.ndindex(np.shape(self.program.inputs[name]))] for name, axis in names
        ]
        return [self._derivative(along)[0] for along in itertools.product(*places)]

    def _derivative(self, along: Sequence[Along]) -> list[Any]:
        """A derivative by central differences."""
        step = mpmath.mpf(10) ** (-self.digits)
        total: Any = 0
        for signs in itertools.product((1, -1), repeat=len(along)):
            inputs = exact_inputs(self.program.inputs)
            for sign, (name, place, axis) in zip(signs, along):
                inputs = moved(inputs, name, place, sign * axis * step)
            total = total + np.prod(signs) * np.array(_flat(self._at(inputs)), object)
        found = [*(total / (2 * step) ** len(along))]
        self.largest = max([self.largest, *map(mpmath.fabs, found)])
        return found

    def _without_errors(self, number: Any) -> Any:
        smallest = self.largest * mpmath.mpf(10) ** (-1.5 * self.digits)
        a, b = (
            part if mpmath.fabs(part) > smallest else mpmath.mpf(0) for part in (mpmath.re(number), mpmath.im(number))
        )
        return mpmath.mpc(a, b)

    def _at(self, inputs: Mapping[str, Any]) -> Any:
        value = self.program.meaning(EXACT, inputs)
        if not self.readout:
            return value
        total = np.sum(value) if isinstance(value, np.ndarray) else value
        return mpmath.re(mpmath.mpc(_WEIGHT) * total)


def _flat(value: Any) -> list[Any]:
    return [*np.ravel(np.asarray(value, object))]


class Request(NamedTuple):
    """A command, and what its numbers mean."""

    program: ComplexProgram
    readout: bool
    options: tuple[str, ...]

    def line(self) -> list[str]:
        words = [f"{name}={_text(value)}" for name, value in self.program.inputs.items()]
        return ["eval", self.program.text(self.readout), *words, *self.options]

    def claims(self, printed: Mapping[str, Any]) -> Iterator[Claim]:
        """The certified numbers of the command's JSON."""
        certified = printed["certified"]
        yield Claim("value", printed["value"], certified["value"], Meaning("value"))
        of_complex = isinstance(printed["value"], dict)
        for part in ("grad", "jacobian"):
            for name, found in printed.get(part, {}).items():
                kind = "slope" if of_complex or not np.iscomplexobj(self.program.inputs[name]) else "gradient"
                yield Claim(name, found, certified[part][name], Meaning(kind, ((name, 1.0),)))
        for name, pair in printed.get("wirtinger", {}).items():
            for side, found in (pair or {}).items():
                yield Claim(f"{side} {name}", found, certified["wirtinger"][name][side], Meaning(side, ((name, 1.0),)))
        for key, found in printed.get("derivatives", {}).items():
            yield Claim(key, found, certified["derivatives"][key], Meaning("parts", (*map(_axis, key.split(",")),)))


_PART = re.compile(r"(?:(real|imag)\()?(\w+)\)?")


def _axis(label: str) -> tuple[str, complex]:
    """The input that a label names, and its axis."""
    match = _PART.fullmatch(label)
    assert match is not None
    return match[2], 1j if match[1] == "imag" else 1.0


def _text(value: Any) -> str:
    if np.ndim(value):
        return f"[{', '.join(map(_text, value))}]"
    return repr(complex(value)).strip("()") if np.iscomplexobj(value) else repr(float(value))


def requests(program: ComplexProgram) -> list[Request]:
    several = program.kind in "vm"
    elements = sum(2 * np.size(value) for value in program.inputs.values())
    second = ("--order", "2") if elements**2 <= _MOST_ELEMENTS else ()
    derived = ("--jacobian",) if several else ()
    found = [Request(program, False, derived), Request(program, True, second)]
    if program.kind != "r" and not program.analytic and any(map(np.iscomplexobj, program.inputs.values())):
        # Most of these are not holomorphic.
        found[0] = Request(program, False, (*derived, "--wirtinger"))
    return found


def verdict(request: Request, claim: Claim) -> str:
    """ "confirmed", "not certified" or what is wrong. Raises NotJudgedError where the judge has no number."""
    if claim.digits is None:
        return "not certified" if claim.found is not None else "no derivative"
    said = ""
    for digits in _DIGITS:
        try:
            exact = Judge(request.program, request.readout, digits).numbers(claim.meaning)
        except (ZeroDivisionError, ValueError, OverflowError, mpmath.libmp.NoConvergence) as error:
            raise NotJudgedError(f"the judge has no number: {type(error).__name__}") from error
        said = _compared(claim, exact)
        if said == "confirmed":
            return said
    return said


def _compared(claim: Claim, exact: Sequence[Any]) -> str:
    found = _numbers(claim.found)
    if len(found) != len(exact):
        return f"WRONG: {claim.name} has {len(found)} numbers, not {len(exact)}"
    parts = [pair for own, truth in zip(found, exact) for pair in _parts(own, truth)]
    right = min(correct_digits(own, truth) for own, truth in parts)
    if right < (claim.digits or 0):
        return f"WRONG: {claim.digits} digits of {claim.name} are certified, and {right} are right"
    if claim.digits != 16 and right > (claim.digits or 0) + 2:
        return f"MODEST: {claim.digits} digits of {claim.name} are certified, and {right} are right"
    return "confirmed"


def _numbers(found: Any) -> list[complex | float]:
    if isinstance(found, dict):
        parts = np.ravel(np.asarray(found["re"], float)), np.ravel(np.asarray(found["im"], float))
        return [complex(a, b) for a, b in zip(*parts)]
    return [float(number) for number in np.ravel(np.asarray(found, float))]


def _parts(own: complex | float, truth: Any) -> list[tuple[float, Any]]:
    """The parts of a number, each with that of the exact one."""
    return [(own.real, mpmath.re(truth)), (own.imag, mpmath.im(truth))][: 2 if isinstance(own, complex) else 1]


class Tally:
    """Counts the outcomes of programs and claims; each program is limited to `seconds`."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.seconds = seconds
        self.programs = 0
        self.verdicts: Counter[str] = Counter()
        self.digits: Counter[int] = Counter()
        self.reasons: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.unproved: list[str] = []

    def add(self, program: ComplexProgram) -> None:
        self.programs += 1
        for request in requests(program):
            before = signal.signal(signal.SIGVTALRM, too_long)
            # Repeated, because mpmath catches exceptions.
            signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds, 1.0)
            try:
                self._judge(request)
            except NotJudgedError as error:
                self.verdicts[f"not judged: {error}"] += 1
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                signal.signal(signal.SIGVTALRM, before)

    def _judge(self, request: Request) -> None:
        line = request.line()
        done = commands.run([*line, "--certify", "--json"])
        if not done.out:
            self._note(line, json.loads(done.err)["error"]["message"])
            return
        printed = json.loads(done.out)
        for warning in printed.get("warnings", ()):
            if warning["code"] == "unproved":
                self._note(line, warning["message"])
        for claim in request.claims(printed):
            if _is_finite(claim.found):
                self._count(line, claim, verdict(request, claim))
            else:
                self.verdicts["not finite"] += 1

    def _count(self, line: Sequence[str], claim: Claim, said: str) -> None:
        self.verdicts[said.partition(":")[0]] += 1
        if said == "confirmed":
            self.digits[claim.digits or 0] += 1
        elif said.startswith(("WRONG", "MODEST")):
            self.wrong.append(f"{said}\n{line}\n{claim.found}")

    def _note(self, line: Sequence[str], message: str) -> None:
        self.reasons[re.sub(r"no digits of .* are proved: (with [\d,]+ digits )?", "", message)] += 1
        self.unproved.append(f"{message}\n{line}")

    def report(self) -> str:
        lines = [f"{self.programs:,} programs; {self.verdicts['confirmed']:,} claims confirmed"]
        lines += [f"  {digits:2} digits: {n:,}" for digits, n in sorted(self.digits.items())]
        lines += [f"{n:6,} claims: {what}" for what, n in self.verdicts.most_common() if what != "confirmed"]
        lines += [f"{n:6,} commands: {what}" for what, n in self.reasons.most_common()]
        return "\n".join(lines)


def _is_finite(found: Any) -> bool:
    """Whether the numbers in JSON are finite; others are texts there."""
    return "nan" not in str(found) and "inf" not in str(found).lower()


def program(seed: int, i: int) -> ComplexProgram:
    return complex_program(seed, i, special=i % 3 == 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.complex_certificates", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="how many programs (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="the first program (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to look at one (default: 10)")
    parser.add_argument("--unproved", action="store_true", help="print what is refused or not certified too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tally, started = Tally(options.seconds), time.monotonic()
    for i in range(options.first, options.first + options.count):
        before = len(tally.wrong), len(tally.unproved)
        tally.add(program(options.seed, i))
        found = [*tally.wrong[before[0] :], *(tally.unproved[before[1] :] if options.unproved else ())]
        for text in found:
            print(f"--- program {i}: {text}", flush=True)
    print(f"{tally.report()}\n{time.monotonic() - started:,.0f} s", flush=True)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
