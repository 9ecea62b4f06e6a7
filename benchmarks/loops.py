"""Measures the value and the gradients of programs with loops of many rounds.

gradcli's compiled programs, with and without llvmlite, against PyTorch, JAX with `lax.scan` and `lax.while_loop`, CasADi
with `mapaccum`, and Python or NumPy for the value alone; each in a process of its own, on one thread, and called in
turn. First results come from fresh processes. Each library is called for some time, during which it may compile; then the
fastest round counts.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from measure import circumstances, interleaved, parser, publish, short

# Loaded here, before the time of a first result begins.
from numpy.random import default_rng
from processes import Peers, Run

PACKAGES = ["torch", "jax", "casadi", "numpy", "llvmlite"]
# Read by OpenMP, OpenBLAS and XLA when they are loaded.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
# Fresh processes for each first result, seconds of calls before a measurement, and seconds per round.
STARTS, SETTLING, ROUND = 3, 1.5, 0.02
# Seconds after which a task has fewer rounds than the option says, and how many it has at least.
LONGEST, FEWEST = 60, 3
# Bound on the rounds of tasks in all tables; only the last two have the tasks beyond.
MOST_SHOWN = 10_000

State = tuple[Any, ...]


class Task(NamedTuple):
    """A program with a loop, in gradcli's language and for the other libraries.

    There `start(library, p)` is the state before the first round, `step(library, p, state, row)` the one after a round,
    and `end(state)` the result; `p` has the parameters by name. `rows` has an array of the data that each round reads, or
    is None. With `goes_on`, a function of the state, the loop has no fixed number of rounds.
    """

    source: str
    parameters: Mapping[str, Any]
    rounds: int
    start: Callable[[Any, Mapping[str, Any]], State]
    step: Callable[[Any, Mapping[str, Any], State, Any], State]
    end: Callable[[State], Any]
    data: Mapping[str, Any] = {}
    rows: Any = None
    goes_on: Callable[[State], Any] | None = None
    # Whether rounds compute with arrays, and whether CasADi, whose symbols are matrices, can express them.
    arrays: bool = False
    matrices: bool = True


def runge_kutta(rounds: int) -> Task:
    """The logistic equation by the Runge-Kutta method of order 4."""

    def step(_: Any, p: Mapping[str, Any], state: State, __: Any) -> State:
        (y,), r, c, h = state, p["r"], p["c"], p["t"] / rounds
        k1 = r * y * (1 - y / c)
        k2 = r * (y + h / 2 * k1) * (1 - (y + h / 2 * k1) / c)
        k3 = r * (y + h / 2 * k2) * (1 - (y + h / 2 * k2) / c)
        k4 = r * (y + h * k3) * (1 - (y + h * k3) / c)
        return (y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4),)

    source = f"""
h = t/{rounds}; y = y0
for i in range({rounds}) {{
  k1 = r*y*(1 - y/c)
  k2 = r*(y + h/2*k1)*(1 - (y + h/2*k1)/c)
  k3 = r*(y + h/2*k2)*(1 - (y + h/2*k2)/c)
  k4 = r*(y + h*k3)*(1 - (y + h*k3)/c)
  y = y + h/6*(k1 + 2*k2 + 2*k3 + k4)
}}
y"""
    parameters = {"y0": 0.1, "r": 0.7, "c": 2.0, "t": 5.0}
    return Task(source, parameters, rounds, lambda _, p: (p["y0"],), step, lambda state: state[0])


def newton() -> Task:
    """The root of x**3 - a*x - b."""

    def step(_: Any, p: Mapping[str, Any], state: State, __: Any) -> State:
        x = state[0]
        d = (x**3 - p["a"] * x - p["b"]) / (3 * x**2 - p["a"])
        return x - d, d

    source = "x = 3; d = 1; while abs(d) > 1e-12 { d = (x**3 - a*x - b)/(3*x**2 - a); x = x - d }; x"
    return Task(
        source, {"a": 2.0, "b": 5.0}, 0, lambda _, __: (3.0, 1.0), step, lambda state: state[0],
        goes_on=lambda state: abs(state[1]) > 1e-12,
    )  # fmt: skip


def garch() -> Task:
    """The logarithmic likelihood of a GARCH(1,1) model for 1,000 numbers."""

    def step(library: Any, p: Mapping[str, Any], state: State, row: Any) -> State:
        h, total = state
        h = p["w"] + p["a"] * row[0] ** 2 + p["b"] * h
        return h, total + library.log(h) + row[1] ** 2 / h

    source = "h = w; total = 0; for t in range(1, 1001) { h = w + a*e[t-1]**2 + b*h; total = total + log(h) + e[t]**2/h }; total"
    series = drawn(1001)
    return Task(
        source, {"w": 0.1, "a": 0.2, "b": 0.6}, 1000, lambda _, p: (p["w"], 0.0), step, lambda state: state[1],
        {"e": series}, [*map(list, itertools.pairwise(series.tolist()))],
    )  # fmt: skip


def kalman() -> Task:
    """The logarithmic likelihood of a Kalman filter for places and velocities."""
    unit, shift = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]

    def start(library: Any, _: Any) -> State:
        return library.constant([[0.0], [0.0]]), library.constant(unit), 0.0

    def step(library: Any, p: Mapping[str, Any], state: State, row: Any) -> State:
        m, spread, total = state
        one = library.constant(unit)
        onward = one + p["dt"] * library.constant(shift)
        m, spread = onward @ m, onward @ spread @ onward.T + p["q"] * one
        s, v = spread[0, 0] + p["r"], row[0] - m[0, 0]
        gain = spread[:, :1] / s
        return m + gain * v, spread - s * (gain @ gain.T), total + library.log(s) + v**2 / s

    source = """
F = [[1, dt], [0, 1]]; P = [[1, 0], [0, 1]]; m = [0, 0]; total = 0
for t in range(500) {
  m = F@m; P = F@P@F.T + q*[[1, 0], [0, 1]]
  S = P[0, 0] + r; K = P[:, 0]/S; v = e[t] - m[0]
  m = m + K*v; P = P - S*outer(K, K); total = total + log(S) + v**2/S
}
total"""
    series = drawn(500)
    return Task(
        source, {"dt": 0.1, "q": 0.2, "r": 0.3}, 500, start, step, lambda state: state[2], {"e": series},
        series[:, None], arrays=True,
    )  # fmt: skip


def logistic_map() -> Task:
    """10,000 rounds of x = r*x*(1 - x), at the r where they neither forget the start nor diverge from each other."""
    return Task(
        "x = x0; for i in range(10000) { x = r*x*(1 - x) }; x", {"x0": 0.3, "r": 3.0}, 10_000,
        lambda _, p: (p["x0"],), lambda _, p, state, __: (p["r"] * state[0] * (1 - state[0]),), lambda state: state[0],
    )  # fmt: skip


def bodies() -> Task:
    """1,000 steps of five bodies that attract each other."""

    def step(library: Any, p: Mapping[str, Any], state: State, _: Any) -> State:
        x, v = state
        d = x[:, None, :] - x[None, :, :]
        squares = library.sum(d**2, -1) + p["s"]
        v = v - p["dt"] * p["g"] * library.sum(p["m"][None, :, None] * d / squares[:, :, None] ** 1.5, 1)
        return x + p["dt"] * v, v

    source = """
for t in range(1000) {
  d = x[:, None, :] - x[None, :, :]
  squares = sum(d**2, axis=-1) + s
  v = v - dt*g*sum(m[None, :, None]*d/squares[:, :, None]**1.5, axis=1)
  x = x + dt*v
}
sum(x**2)"""
    parameters = {
        "x": drawn(5, 3), "v": 0.1 * drawn(5, 3, seed=1), "m": abs(drawn(5, seed=2)) + 0.5,
        "g": 1.0, "dt": 0.001, "s": 0.01,
    }  # fmt: skip
    return Task(
        source, parameters, 1000, lambda _, p: (p["x"], p["v"]), step, lambda state: (state[0] ** 2).sum(),
        arrays=True, matrices=False,
    )  # fmt: skip


def recurrent() -> Task:
    """A recurrent network of 64 units over 100 steps of time."""
    series = drawn(100, 64)
    return Task(
        "h = zeros(64); for x in e { h = tanh(W@x + U@h + b) }; mean(h**2)",
        {"W": drawn(64, 64, seed=1) / 8, "U": drawn(64, 64, seed=2) / 8, "b": drawn(64, seed=3)},
        100, lambda library, _: (library.constant([0.0] * 64),),
        lambda library, p, state, row: (library.tanh(p["W"] @ row + p["U"] @ state[0] + p["b"]),),
        lambda state: (state[0] ** 2).mean(), {"e": series}, series, arrays=True, matrices=False,
    )  # fmt: skip


def heat() -> Task:
    """1,000 steps of the heat equation at 1,000 points of a ring."""

    def step(library: Any, p: Mapping[str, Any], state: State, _: Any) -> State:
        u = state[0]
        return (u + p["k"] * (library.roll(u, 1) - 2 * u + library.roll(u, -1)),)

    return Task(
        "for t in range(1000) { u = u + k*(roll(u, 1) - 2*u + roll(u, -1)) }; sum(u**2)", {"u": drawn(1000), "k": 0.2},
        1000, lambda _, p: (p["u"],), step, lambda state: (state[0] ** 2).sum(), arrays=True, matrices=False,
    )  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> Any:
    return default_rng(seed).standard_normal(shape)


SIZES = [10**n for n in range(2, 7)]
STEPS = {f"RK4, {n:,} steps": n for n in SIZES}
TASKS: dict[str, Callable[[], Task]] = {
    **{title: partial(runge_kutta, n) for title, n in STEPS.items()},
    "Newton's method": newton,
    "GARCH(1,1), 1,000 terms": garch,
    "Kalman filter, 500 steps": kalman,
    "logistic map, 10,000 rounds": logistic_map,
    "five bodies, 1,000 steps": bodies,
    "RNN, 100 steps of 64 units": recurrent,
    "heat, 1,000 steps of 1,000 points": heat,
}


# Where a library would take minutes or all memory, the largest number of rounds that it is measured for.
MOST_ROUNDS = {"PyTorch": 10_000, "CasADi": 100_000}


class Library:
    """A library that runs the loop of a task; `log`, `tanh`, `sum` and `roll` are its functions."""

    title: str

    def __init__(self, title: str) -> None:
        self.task = TASKS[title]()

    @classmethod
    def expresses(cls, task: Task) -> bool:
        """Whether the library can run the task within seconds."""
        return task.rounds <= MOST_ROUNDS.get(cls.title, task.rounds)

    def loop(self) -> Mapping[str, Run]:
        raise NotImplementedError


class Gradcli(Library):
    title = "gradcli"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.gradcli = importlib.import_module("gradcli")

    def loop(self) -> Mapping[str, Run]:
        program = self.gradcli.compile(self.task.source)
        values, wrt = {**self.task.parameters, **self.task.data}, [*self.task.parameters]

        def run() -> Sequence[Any]:
            value, found = program.value_and_grad(values, wrt)
            return value, *found.values()

        return {self.title: run}


class GradcliWithoutLlvm(Gradcli):
    title = "gradcli without llvmlite"

    def __init__(self, title: str) -> None:
        # An import of it is an ImportError now.
        sys.modules["llvmlite"] = None  # type: ignore[assignment]
        super().__init__(title)


class Eager(Library):
    """A library whose loops are those of Python."""

    def _result(self, parameters: Mapping[str, Any], rows: Any) -> Any:
        task = self.task
        state = task.start(self, parameters)
        if task.goes_on is not None:
            while task.goes_on(state):
                state = task.step(self, parameters, state, None)
        else:
            for row in itertools.repeat(None, task.rounds) if rows is None else rows:
                state = task.step(self, parameters, state, row)
        return task.end(state)


class PyTorch(Eager):
    title = "PyTorch"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        torch = self.torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        self.constant = partial(torch.tensor, dtype=torch.float64)
        self.log, self.tanh, self.sum, self.roll = torch.log, torch.tanh, torch.sum, torch.roll

    def loop(self) -> Mapping[str, Run]:
        rows = self.task.rows
        leaves = {n: self.constant(v, requires_grad=True) for n, v in self.task.parameters.items()}
        # Numbers of Python are faster than tensors of a number.
        rows = self.constant(rows) if self.task.arrays and rows is not None else rows

        def run() -> Sequence[Any]:
            for leaf in leaves.values():
                leaf.grad = None
            value = self._result(leaves, rows)
            value.backward()
            return value.detach(), *(leaf.grad for leaf in leaves.values())

        return {self.title: run}


class ByHand(Eager):
    """The value alone, of Python's numbers or of NumPy's arrays."""

    title = "Python or NumPy, value only"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        numpy = importlib.import_module("numpy")
        self.constant, self.sum, self.tanh, self.roll = numpy.array, numpy.sum, numpy.tanh, numpy.roll
        self.log = math.log

    def loop(self) -> Mapping[str, Run]:
        return {self.title: lambda: (self._result(self.task.parameters, self.task.rows),)}


class Jax(Library):
    """`lax.scan` in reverse mode; `lax.while_loop`, which has none, in forward mode."""

    title = "JAX jit"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        numpy = importlib.import_module("jax.numpy")
        self.constant, self.log, self.tanh, self.sum = numpy.array, numpy.log, numpy.tanh, numpy.sum
        self.roll = numpy.roll

    def loop(self) -> Mapping[str, Run]:
        leaves = {n: self.constant(v) for n, v in self.task.parameters.items()}
        if self.task.goes_on is None:
            compiled = self.jax.jit(self.jax.value_and_grad(self._scanned))
        else:
            forward = self.jax.jacfwd(lambda p: (self._repeated(p),) * 2, has_aux=True)
            compiled = self.jax.jit(lambda p: forward(p)[::-1])

        def run() -> Sequence[Any]:
            value, found = self.jax.block_until_ready(compiled(leaves))
            return value, *(found[name] for name in leaves)

        return {self.title: run}

    def _scanned(self, parameters: Mapping[str, Any]) -> Any:
        task = self.task
        rows = None if task.rows is None else self.constant(task.rows)

        def step(state: State, row: Any) -> tuple[State, None]:
            return task.step(self, parameters, state, row), None

        end, _ = self.jax.lax.scan(step, task.start(self, parameters), rows, task.rounds)
        return task.end(end)

    def _repeated(self, parameters: Mapping[str, Any]) -> Any:
        task = self.task
        state = task.start(self, parameters)
        return task.end(self.jax.lax.while_loop(task.goes_on, lambda s: task.step(self, parameters, s, None), state))


class Casadi(Library):
    """A round as a function of the state, the parameters and the data, and `mapaccum` of it."""

    title = "CasADi"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.casadi = importlib.import_module("casadi")
        self.constant, self.log = self.casadi.DM, self.casadi.log

    @classmethod
    def expresses(cls, task: Task) -> bool:
        return task.goes_on is None and task.matrices and super().expresses(task)

    def loop(self) -> Mapping[str, Run]:
        task, casadi = self.task, self.casadi
        names = [*task.parameters]
        p = casadi.MX.sym("p", len(names))
        start = task.start(self, dict(zip(names, casadi.vertsplit(p))))
        shapes = [casadi.MX(s).shape for s in start]
        state = [casadi.SX.sym("state", *shape) for shape in shapes]
        given = casadi.SX.sym("p", len(names))
        rows = casadi.DM(0, task.rounds) if task.rows is None else casadi.DM(task.rows).T
        row = casadi.SX.sym("row", rows.shape[0])
        after = task.step(self, dict(zip(names, casadi.vertsplit(given))), tuple(state), casadi.vertsplit(row))
        one_round = casadi.Function("round", [self._packed(state), given, row], [self._packed(after)])
        all_rounds = one_round.mapaccum(task.rounds)
        last = all_rounds(self._packed(start), casadi.repmat(p, 1, task.rounds), rows)[:, -1]
        starts = [0, *itertools.accumulate(math.prod(shape) for shape in shapes)]
        value = task.end(tuple(last[a:b] for a, b in itertools.pairwise(starts)))
        function = casadi.Function("f", [p], [value, casadi.gradient(value, p)])
        numbers = [task.parameters[n] for n in names]

        def run() -> Sequence[Any]:
            value, found = function(numbers)
            return float(value), *found.full().ravel()

        return {self.title: run}

    def _packed(self, state: Sequence[Any]) -> Any:
        return self.casadi.vertcat(*(self.casadi.vec(s) for s in state))


LIBRARIES: Sequence[type[Library]] = (Gradcli, GradcliWithoutLlvm, Jax, PyTorch, Casadi, ByHand)


class Measured(NamedTuple):
    """Seconds per call and until the first result, and the peak of memory in MiB, by library."""

    call: Mapping[str, float]
    first: Mapping[str, float]
    memory: Mapping[str, float]


def measured(title: str, rounds: int) -> Measured:
    task = TASKS[title]()
    makers = {library.title: partial(library, title) for library in LIBRARIES if library.expresses(task)}
    firsts = []
    starts = STARTS if task.rounds <= MOST_SHOWN else 1
    for _ in range(starts):
        peers = Peers(makers, "loop")
        peers.check()
        firsts.append(peers.first)
        if len(firsts) < starts:
            peers.close()
    for row in peers.missing:
        print(f"{title}: {row.name}: {row.missing}", flush=True)
    seconds = {name: settled(peers, name) for name in peers.results}
    timers = {name: peers.timer(name, calls(s)) for name, s in seconds.items()}
    times = interleaved(timers, max(FEWEST, min(rounds, int(LONGEST / sum(seconds.values())))), warmups=0)
    peers.close()
    fastest = {name: min(found) for name, (found,) in times.items()}
    return Measured(fastest, {n: min(f[n] for f in firsts) for n in fastest}, peers.peak)


def settled(peers: Peers, name: str) -> float:
    """Call a library for some seconds; returns the seconds of a call then."""
    end = time.perf_counter() + SETTLING
    (seconds,) = peers.timer(name, 1)()
    while time.perf_counter() < end:
        (seconds,) = peers.timer(name, calls(seconds))()
    return seconds


def calls(seconds: float) -> int:
    """The number of calls in a round."""
    return max(1, min(1000, int(ROUND / seconds)))


def table(found: Mapping[str, Mapping[str, float]], form: Callable[[float], str], ratios: Sequence[str]) -> str:
    """A row for each task, a column for each library, and the ratios of gradcli to others."""
    names = [library.title for library in LIBRARIES]
    heads = ["", *names, *(f"gradcli to {r}" for r in ratios)]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for title, numbers in found.items():
        cells = [form(numbers[n]) if n in numbers else "-" for n in names]
        cells += [short(numbers["gradcli"] / numbers[r]) if r in numbers else "-" for r in ratios]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    options = parser(__doc__, 10).parse_args()
    os.environ.update(ONE_THREAD)
    found = {}
    for title in TASKS:
        found[title] = measured(title, options.rounds)
        print(title, {n: short(t * 1e3) for n, t in found[title].call.items()}, "ms", flush=True)
    tasks = [title for title in TASKS if STEPS.get(title, 0) <= MOST_SHOWN]
    ratios = ["JAX jit", "PyTorch", "CasADi"]
    per_round = {f"{n:,}": {k: t / n for k, t in found[title].call.items()} for title, n in STEPS.items()}
    tables = {
        f"the value and all gradients, ms per call, the fastest of {options.rounds} rounds": table(
            {t: found[t].call for t in tasks}, lambda seconds: short(seconds * 1e3), ratios
        ),
        f"seconds from the import of the library to the first result, the fastest of {STARTS} processes": table(
            {t: found[t].first for t in tasks}, short, ["JAX jit", "PyTorch"]
        ),
        "peak memory beyond that of the imported library, MiB": table(
            {t: f.memory for t, f in found.items()}, "{:.1f}".format, []
        ),
        "RK4, ns per step, by the number of steps": table(
            per_round, lambda seconds: short(seconds * 1e9), ["JAX jit", "CasADi"]
        ),
    }
    publish(options, "loops", circumstances(PACKAGES), tables)
    if options.json:
        whole = {title: f._asdict() for title, f in found.items()}
        Path(options.json).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
