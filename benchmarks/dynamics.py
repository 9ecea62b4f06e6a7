"""Measures the equations of Lotka and Volterra to t = 10 with the Jacobian of the end by the four parameters.

gradcli against diffrax and SciPy, as far as they are installed, each in a process of its own. The errors are those against
18 digits by Taylor series of mpmath. A process is the time of `gradcli eval`, and each warm call has other parameters than
the one before.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

PROGRAM = (
    "f(t, s) = [a*s[0] - b*s[0]*s[1], d*s[0]*s[1] - c*s[1]]; solve_ivp(f, (0, 10), [10, 5], method='auto').y[:, 1]"
)
VALUES = {"a": 1.1, "b": 0.4, "c": 0.4, "d": 0.1}
# The derivatives of the first state by the parameters.
EXPECTED = {"a": -1.61987559442966744, "b": 26.0559949098450955, "c": 25.1135312718616451, "d": -78.8543127304773186}
WARMING, CALLS, PROCESSES = 20, 50, 5

Jacobian = Callable[[float], Any]


def gradcli() -> Jacobian:
    """The derivatives for a value of the first parameter."""
    program = importlib.import_module("gradcli").compile(PROGRAM)

    def called(a: float) -> list[float]:
        found = program.jacobian({**VALUES, "a": a})
        return [float(found[name][0]) for name in VALUES]

    return called


def scipy_differences() -> Jacobian:
    """By central differences of `solve_ivp` at its most accurate."""
    np, integrate = importlib.import_module("numpy"), importlib.import_module("scipy.integrate")

    def end(a: float, b: float, c: float, d: float) -> Any:
        def slopes(_t: float, s: Any) -> list[float]:
            return [a * s[0] - b * s[0] * s[1], d * s[0] * s[1] - c * s[1]]

        return integrate.solve_ivp(slopes, (0, 10), [10, 5], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]

    def called(a: float) -> list[float]:
        values, found = np.array([a, VALUES["b"], VALUES["c"], VALUES["d"]]), []
        for i in range(4):
            step = np.zeros(4)
            step[i] = 1e-5
            found.append(float((end(*(values + step)) - end(*(values - step)))[0] / 2e-5))
        return found

    return called


def diffrax() -> Jacobian:
    """By forward mode through the steps."""
    jax, library = importlib.import_module("jax"), importlib.import_module("diffrax")
    jax.config.update("jax_enable_x64", True)

    def end(p: Any) -> Any:
        def slopes(_t: Any, s: Any, p: Any) -> Any:
            return jax.numpy.stack([p[0] * s[0] - p[1] * s[0] * s[1], p[3] * s[0] * s[1] - p[2] * s[1]])

        solved = library.diffeqsolve(
            library.ODETerm(slopes), library.Dopri8(), 0.0, 10.0, 0.01, jax.numpy.array([10.0, 5.0]), p,
            stepsize_controller=library.PIDController(rtol=1e-12, atol=1e-12), max_steps=10_000,
            adjoint=library.ForwardMode(),
        )  # fmt: skip
        return solved.ys[-1]

    compiled = jax.jit(jax.jacfwd(end))
    return lambda a: compiled(jax.numpy.array([a, VALUES["b"], VALUES["c"], VALUES["d"]]))[0].tolist()


PEERS = {"gradcli": gradcli, "diffrax": diffrax, "scipy": scipy_differences}


def measure(name: str) -> str:
    """One line of the table."""
    start = time.perf_counter()
    called = PEERS[name]()
    found = called(VALUES["a"])
    first = time.perf_counter() - start
    error = max(abs(f / e - 1) for f, e in zip(found, EXPECTED.values()))
    for i in range(WARMING):
        called(1.1 + 1e-6 * i)
    times = []
    for i in range(CALLS):
        begin = time.perf_counter()
        called(1.2 + 1e-6 * i)
        times.append(time.perf_counter() - begin)
    return f"first {first:.3f} s, warm {1e3 * median(times):.2f} ms, relative error {error:.1e}"


def process_time() -> float:
    """The median time of `gradcli eval` with the Jacobian."""
    values = [f"{name}={value}" for name, value in VALUES.items()]
    times = []
    for _ in range(PROCESSES):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "gradcli", "eval", PROGRAM, *values, "--jacobian"], check=True, capture_output=True
        )
        times.append(time.perf_counter() - begin)
    return median(times)


def main() -> None:
    if len(sys.argv) > 1:
        print(measure(sys.argv[1]))
        return
    print(f"gradcli eval, process: {process_time():.3f} s")
    for name in PEERS:
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True)
        print(f"{name}: {done.stdout.strip() or done.stderr.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
