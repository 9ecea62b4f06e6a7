"""Writes tests/data/ode-problems.json: the solutions of `ode_problems` at their ends, and derivatives by complex steps.

`python -m tests.ode_references [PROBLEM …]`, an hour for all. The methods are those of Gragg, Bulirsch and Stoer, and for
stiff problems that of P. Deuflhard, the extrapolated linearly implicit Euler method, in numbers of 60 digits: nothing of
it is in the package. Of POLLU, for which it takes long, the file has the published states alone; C4 is there by
eigenvalues, and OREGO and BRUSS by steps with looser tolerances.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flint import acb, acb_mat, arb, ctx

from tests.ode_problems import PROBLEMS, STIFF, InitialValueProblem

PATH = Path(__file__).parent / "data" / "ode-problems.json"
_BITS = 220
# The imaginary part of a number by which is differentiated, relative to it, and the difference for Jacobians.
_STEP, _DIFFERENCE = arb("1e-50"), arb("1e-26")
# The tolerances of a step and the numbers of columns of the extrapolation.
_SMOOTH, _STIFF = (1e-21, 12), (1e-14, 14)
_FUNCTIONS = {name: getattr(acb, name) for name in ("cos", "sin", "sqrt", "exp")}

State = list[Any]
# Takes the time, the state and the length; returns the state after it in a number of steps.
Method = Callable[[Any, State, Any, int], State]


def solved(problem: InitialValueProblem, moved: str | None, stiff: bool) -> list[Any]:
    """The states at the end, with their derivatives by `moved`, a parameter or the number of a start, as imaginary parts."""
    names = {n: _number(v, n == moved) for n, v in problem.parameters.items()}
    state = [_number(v, str(i) == moved) for i, v in enumerate(problem.start)]
    code = compile(problem.right_side, "right side", "eval")

    def slopes(t: Any, y: State) -> State:
        return [acb(x) for x in eval(code, {**_FUNCTIONS, **names, "t": t, "y": y})]

    tolerance, columns = _STIFF if stiff else _SMOOTH
    method = _linearly_implicit(slopes) if stiff else _gragg(slopes)
    return _extrapolated(problem, method, state, tolerance, columns, 1 if stiff else 2)


def _number(value: float, moved: bool) -> Any:
    return acb(value, _STEP * (abs(value) or 1)) if moved else acb(value)


def _extrapolated(
    problem: InitialValueProblem, method: Method, state: State, tolerance: float, columns: int, power: int
) -> State:
    end, now, length = arb(problem.end), arb(0), arb(problem.end) * (1e-14 if power == 1 else 1e-3)
    largest = [abs(float(y.real)) for y in state]
    while now < end:
        length = min(length, end - now)
        table: list[State] = []
        error, least = float("inf"), float("inf")
        for k in range(1, columns + 1):
            count = 2 * k if power == 2 else k
            row = [method(now, state, length, count)]
            for j in range(1, k):
                ratio = arb(k) / (k - j)
                factor = 1 / (ratio**power - 1)
                row.append([a + (a - b) * factor for a, b in zip(row[-1], table[-1][j - 1])])
            if k > 4:
                error = max(_distance(a, b, s, problem.atol) for a, b, s in zip(row[-1], row[-2], largest))
                least = min(least, error)
            table.append([[_middle(y) for y in column] for column in row])
            if error < tolerance or error > 1e6 * least:
                break
        if error < tolerance:
            now, state = now + length, table[-1][-1]
            largest = [max(s, abs(float(y.real))) for s, y in zip(largest, state)]
            length = length * (2.0 if len(table) < columns - 2 else 1.05)
        else:
            length = length * 0.4
        now, length = now.mid(), length.mid()
    return state


def _distance(a: Any, b: Any, size: float, atol: float) -> float:
    scale = max(abs(float(a.real)), 1e-12 * size if atol else 0.0) or 1e-200
    return max(abs(float((a - b).real)) / scale, 1e-2 * abs(float((a - b).imag) / (abs(float(a.imag)) + 1e-250)))


def _middle(y: Any) -> Any:
    return acb(y.real.mid(), y.imag.mid())


def _gragg(slopes: Callable[[Any, State], State]) -> Method:
    def method(t: Any, y: State, length: Any, count: int) -> State:
        h = length / count
        before, here = y, [a + h * f for a, f in zip(y, slopes(t, y))]
        for i in range(1, count):
            before, here = here, [_middle(a + 2 * h * f) for a, f in zip(before, slopes(t + i * h, here))]
        return [_middle((a + b + h * f) / 2) for a, b, f in zip(before, here, slopes(t + length, here))]

    return method


def _linearly_implicit(slopes: Callable[[Any, State], State]) -> Method:
    known: dict[Any, Any] = {}

    def jacobian(t: Any, y: State) -> Any:
        key = (str(t), str(y[0]))
        if key not in known:
            known.clear()
            here = slopes(t, y)
            columns = []
            for j in range(len(y)):
                step = _DIFFERENCE * (abs(y[j].real).mid() + arb("1e-12"))
                moved = slopes(t, [v + step if i == j else v for i, v in enumerate(y)])
                columns.append([_middle((a - b) / step) for a, b in zip(moved, here)])
            known[key] = columns
        return known[key]

    def method(t: Any, y: State, length: Any, count: int) -> State:
        n, h = len(y), length / count
        columns = jacobian(t, y)
        matrix = acb_mat([[(1 if i == j else 0) - h * columns[j][i] for j in range(n)] for i in range(n)])
        inverse = acb_mat([[_middle(matrix_entry) for matrix_entry in row] for row in matrix.inv().tolist()])
        for i in range(count):
            change = inverse * acb_mat([[h * f] for f in slopes(t + i * h, y)])
            y = [_middle(a + change[k, 0]) for k, a in enumerate(y)]
        return y

    return method


def directions(name: str) -> Sequence[str]:
    """By what the solution is differentiated: by all parameters and starts, of large and of stiff problems by some."""
    parameters, starts = [*PROBLEMS[name].parameters], [str(i) for i in range(len(PROBLEMS[name].start))]
    if name in STIFF:
        return [*parameters[:2], starts[0]]
    return [*parameters, *starts] if len(starts) <= 10 else [*parameters[:3], *starts[:3]]


def reference(name: str) -> dict[str, Any]:
    problem, stiff = PROBLEMS[name], name in STIFF
    ends: dict[str, Any] = {"derivatives": {}}
    for moved in directions(name):
        found = solved(problem, moved, stiff)
        value = problem.parameters[moved] if moved in problem.parameters else problem.start[int(moved)]
        ends["states"] = [float(y.real) for y in found]
        ends["derivatives"][moved] = [float(y.imag / (_STEP * (abs(value) or 1))) for y in found]
    return ends


def main(names: Sequence[str]) -> None:
    ctx.prec = _BITS
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in names or PROBLEMS:
        begin = time.perf_counter()
        known[name] = reference(name)
        print(f"{name} {time.perf_counter() - begin:.1f} s", flush=True)
        lines = (f"{json.dumps(n)}: {json.dumps(known[n])}" for n in PROBLEMS if n in known)
        PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
