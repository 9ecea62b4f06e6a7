"""Measures the cost of proved digits: values and derivatives to 50 and 1,000 digits, against other multi-precision
libraries.

gradcli proves its digits; the others compute with a few more than requested, without proof. mpmath differentiates by
differences at a higher precision; SymPy and Maxima evaluate formulas that they have derived before.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from measure import Row, arguments, circumstances, interleaved, publish, table, write_json
from processes import Comparison, Run, measure
from startup import gradcli, run, timed

DIGITS = (50, 1000)
ORDER = 20
POWER = "log(x**q)"
SERIES = "sin(x**2)*exp(x)/x"
PACKAGES = ["python-flint", "mpmath", "sympy"]


class Library:
    """The tasks to measure, to 50 and to 1,000 digits; each returns the value first."""

    def power(self, digits: int) -> Mapping[str, Run]:
        """log(x**q) and both derivatives at x = 5, q = 3."""
        raise NotImplementedError

    def series(self, digits: int) -> Mapping[str, Run]:
        """sin(x**2)*exp(x)/x and its derivatives at x = 5/4."""
        raise NotImplementedError

    def power_50(self) -> Mapping[str, Run]:
        return self.power(50)

    def power_1000(self) -> Mapping[str, Run]:
        return self.power(1000)

    def series_50(self) -> Mapping[str, Run]:
        return self.series(50)

    def series_1000(self) -> Mapping[str, Run]:
        return self.series(1000)


class Gradcli(Library):
    name = "gradcli"

    def __init__(self) -> None:
        self.gradcli = importlib.import_module("gradcli")

    def power(self, digits: int) -> Mapping[str, Run]:
        evaluate = partial(self.gradcli.compile(POWER).evaluate, {"x": "5", "q": "3"}, digits=digits)

        def call() -> Sequence[Any]:
            found = evaluate()
            return [found.value, found.grad["x"], found.grad["q"]]

        return {self.name: call}

    def series(self, digits: int) -> Mapping[str, Run]:
        evaluate = partial(self.gradcli.compile(SERIES).evaluate, {"x": "1.25"}, digits=digits, order=ORDER)
        keys = [",".join("x" * k) for k in range(2, ORDER + 1)]

        def call() -> Sequence[Any]:
            found = evaluate()
            return [found.value, found.grad["x"], *map(found.derivatives.__getitem__, keys)]

        return {self.name: call}


class Mpmath(Library):
    name = "mpmath"

    def __init__(self) -> None:
        self.mp = importlib.import_module("mpmath").mp

    def power(self, digits: int) -> Mapping[str, Run]:
        mp = self.mp
        mp.dps = digits

        def function(x: Any, q: Any) -> Any:
            return mp.log(x**q)

        def call() -> Sequence[Any]:
            at = mp.mpf(5), mp.mpf(3)
            return [function(*at), mp.diff(function, at, (1, 0)), mp.diff(function, at, (0, 1))]

        return {self.name: call}

    def series(self, digits: int) -> Mapping[str, Run]:
        mp = self.mp
        mp.dps = digits

        def call() -> Sequence[Any]:
            return list(mp.diffs(lambda x: mp.sin(x**2) * mp.exp(x) / x, mp.mpf("1.25"), ORDER))

        return {self.name: call}


class SymPy(Library):
    name = "SymPy evalf"

    def __init__(self) -> None:
        self.sympy = importlib.import_module("sympy")

    def power(self, digits: int) -> Mapping[str, Run]:
        x, q = self.sympy.symbols("x q", positive=True)
        # Kept unevaluated: SymPy would simplify it to q*log(x).
        value = self.sympy.log(self.sympy.Pow(x, q, evaluate=False), evaluate=False)
        formulas = [value, value.diff(x), value.diff(q)]
        return {self.name: lambda: [f.evalf(digits, subs={x: 5, q: 3}) for f in formulas]}

    def series(self, digits: int) -> Mapping[str, Run]:
        x = self.sympy.Symbol("x")
        formulas = [self.sympy.sin(x**2) * self.sympy.exp(x) / x]
        for _ in range(ORDER):
            formulas.append(formulas[-1].diff(x))
        at = {x: self.sympy.Rational(5, 4)}
        return {self.name: lambda: [f.evalf(digits, subs=at) for f in formulas]}


class Maxima(Library):
    """A Maxima process that receives one line and answers with one."""

    name = "Maxima bfloat"

    def __init__(self) -> None:
        self.maxima = subprocess.Popen(
            ["maxima", "--very-quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._say("(display2d: false, bftrunc: false, linel: 100000)$")

    def _say(self, line: str) -> None:
        assert self.maxima.stdin is not None
        self.maxima.stdin.write(line + "\n")

    def _asked(self, line: str, count: int) -> Sequence[float]:
        assert self.maxima.stdout is not None
        self._say(line)
        # Skip other output before the answer.
        line = next(line for line in self.maxima.stdout if line.startswith("["))
        answer = line.strip().strip("[]").replace("b", "e").split(",")
        if len(answer) != count:
            raise RuntimeError(f"Maxima answers {','.join(answer)}")
        return [float(number) for number in answer]

    def power(self, digits: int) -> Mapping[str, Run]:
        self._say(f"(fpprec: {digits}, f: log(x^q), formulas: [f, diff(f, x), diff(f, q)])$")
        line = "print(subst([x = 5b0, q = 3b0], formulas))$"
        return {self.name: lambda: self._asked(line, 3)}

    def series(self, digits: int) -> Mapping[str, Run]:
        self._say(f"(fpprec: {digits}, f: sin(x^2)*exp(x)/x, formulas: makelist(diff(f, x, k), k, 0, {ORDER}))$")
        line = "print(bfloat(subst([x = 5/4], formulas)))$"
        return {self.name: lambda: self._asked(line, ORDER + 1)}


LIBRARIES = {library.name: library for library in (Gradcli, Mpmath, SymPy, Maxima)}
COLUMN = "value and derivatives"
COMPARISONS = {
    f"{what}, {digits:,} digits, per call": Comparison(f"{kind}_{digits}", Gradcli.name, calls, ("ms", 1e-3), COLUMN)
    for kind, what, calls in (
        ("power", f"{POWER} and both derivatives", 20),
        ("series", f"{SERIES} and its derivatives to order {ORDER}", 1),
    )
    for digits in DIGITS
}

_MPMATH = """\
import json
from mpmath import mp
mp.dps = {digits}
f = lambda x, q: mp.log(x**q)
at = mp.mpf(5), mp.mpf(3)
print(json.dumps([str(f(*at)), str(mp.diff(f, at, (1, 0))), str(mp.diff(f, at, (0, 1)))]))
"""
_SYMPY = """\
import json
from sympy import Pow, log, symbols
x, q = symbols("x q", positive=True)
f = log(Pow(x, q, evaluate=False), evaluate=False)
print(json.dumps([str(y.evalf({digits}, subs={{x: 5, q: 3}})) for y in (f, f.diff(x), f.diff(q))]))
"""
_MAXIMA = """\
(display2d: false, linel: 100000, fpprec: {digits}, f: log(x^q))$
print(subst([x = 5b0, q = 3b0], [f, diff(f, x), diff(f, q)]))$
"""


def commands(digits: int) -> Mapping[str, Sequence[str]]:
    """Commands that print the value and both derivatives of log(x**q)."""
    plain = (gradcli(), "eval", POWER, "x=5", "q=3", "--json")
    return {
        "gradcli, float64": plain,
        f"gradcli --digits {digits}": (*plain, "--digits", str(digits)),
        "mpmath": (sys.executable, "-c", _MPMATH.format(digits=digits)),
        "SymPy evalf": (sys.executable, "-c", _SYMPY.format(digits=digits)),
        "Maxima bfloat": ("maxima", "--very-quiet", "--batch-string", _MAXIMA.format(digits=digits)),
    }


def processes(rounds: int) -> tuple[dict[str, list[Row]], dict[str, str]]:
    rows, tables = {}, {}
    for digits in DIGITS:
        jobs = commands(digits)
        expected = json.loads(run(jobs[f"gradcli --digits {digits}"]))["value"]
        for name, command in jobs.items():
            if expected[:12] not in run(command):
                sys.exit(f"error: {name} does not print {expected[:12]}")
        timers = {name: partial(timed, command) for name, command in jobs.items()}
        title = f"{POWER} and both derivatives, {digits:,} digits, start to end"
        rows[title] = [Row(name, times) for name, times in interleaved(timers, rounds, warmups=1).items()]
        tables[f"{title}, {rounds} rounds"] = table(rows[title], ["process"], ("ms", 1e-3), "gradcli, float64")
    return rows, tables


def in_process(rounds: int) -> tuple[dict[str, list[Row]], dict[str, str]]:
    rows, tables = {}, {}
    for title, comparison in COMPARISONS.items():
        measured = measure(LIBRARIES, comparison, rounds)
        rows[title] = measured.rows
        tables[f"{title}, {rounds} rounds"] = measured.table
    return rows, tables


def main() -> None:
    options = arguments(__doc__, rounds=20)
    rows, tables = {}, {}
    for part in (processes, in_process):
        found, texts = part(options.rounds)
        rows |= found
        tables |= texts
    about = circumstances(PACKAGES) | {"Maxima": run(("maxima", "--version")).split()[-1]}
    publish(options, "digits", about, tables)
    if options.json:
        write_json(options.json, about, rows, ["time"])


if __name__ == "__main__":
    main()
