"""Measures repeated evaluation of a value and its gradients: scalars, arrays, a network.

gradcli's compiled programs against PyTorch, JAX, CasADi, HIPS autograd and SymPy's lambdify, each in its own process,
so that their threads do not compete, and called in turn. A library that cannot do a task is left out. With `--sizes`,
only arrays from 100 to 10,000,000 elements are measured: each library is first called for some seconds, during which it
may compile, and then the fastest of short rounds counts.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from measure import circumstances, interleaved, parser, publish, short
from processes import Comparison, Peers, Run, compare

PROGRAM = "log(x**q)*sin(x)+exp(-x*x)"
NETWORK = "h = tanh(X@A + a); mean((h@B + b - Y)**2)"
NETWORK_LEAVES = ("A", "a", "B", "b")
ELEMENTS = 4_000_000
SIZES = [10**n for n in range(2, 8)]
# Elements per round (short enough to be seldom interrupted) and per warm-up step, and seconds of warm-up.
ROUND, STEP, SETTLING = 50_000, 2_000_000, 4.0
SCALARS = (5.0, 3.0)
PACKAGES = ["torch", "jax", "casadi", "autograd", "sympy", "numpy", "llvmlite"]


def vectors(elements: int) -> tuple[Any, Any]:
    import numpy as np

    draw = np.random.default_rng(0)
    return draw.random(elements) + 0.5, draw.random(elements) + 0.5


def network() -> dict[str, Any]:
    import numpy as np

    draw = np.random.default_rng(0)
    shapes = {"X": (1024, 512), "A": (512, 512), "a": (512,), "B": (512, 10), "b": (10,), "Y": (1024, 10)}
    return {name: draw.standard_normal(shape) / math.sqrt(shape[-1]) for name, shape in shapes.items()}


class Library:
    def __init__(self, elements: int = ELEMENTS) -> None:
        self.elements = elements


class ByHand(Library):
    """NumPy with derivatives written by hand."""

    def arrays(self) -> Mapping[str, Run]:
        np = importlib.import_module("numpy")
        x, q = vectors(self.elements)

        def run() -> Sequence[Any]:
            logarithm, sine, bell = np.log(x**q), np.sin(x), np.exp(-x * x)
            by_x = q / x * sine + logarithm * np.cos(x) - 2 * x * bell
            return np.sum(logarithm * sine + bell), by_x, np.log(x) * sine

        return {"NumPy by hand": run}


class Gradcli(Library):
    def scalars(self) -> Mapping[str, Run]:
        import gradcli

        program = gradcli.compile(PROGRAM)
        function, values = program.compiled(("x", "q")), {"x": SCALARS[0], "q": SCALARS[1]}
        return {
            "gradcli, by position": lambda: function(*SCALARS),
            "gradcli, by name": lambda: program.value_and_grad(values),
        }

    def arrays(self) -> Mapping[str, Run]:
        return {"gradcli": self._run(f"sum({PROGRAM})", dict(zip("xq", vectors(self.elements))), ("x", "q"))}

    def network(self) -> Mapping[str, Run]:
        return {"gradcli": self._run(NETWORK, network(), NETWORK_LEAVES)}

    def _run(self, text: str, values: Mapping[str, Any], wrt: Sequence[str]) -> Run:
        import gradcli

        program = gradcli.compile(text)
        return lambda: program.value_and_grad(values, wrt)


class PyTorch(Library):
    def __init__(self, elements: int = ELEMENTS) -> None:
        super().__init__(elements)
        self.torch = importlib.import_module("torch")

    def _function(self, x: Any, q: Any) -> Any:
        return self.torch.log(x**q) * self.torch.sin(x) + self.torch.exp(-x * x)

    def _run(self, function: Any, leaves: Sequence[Any]) -> Run:
        def run() -> Sequence[Any]:
            for leaf in leaves:
                leaf.grad = None
            value = function()
            value.backward()
            return value.detach(), *(leaf.grad for leaf in leaves)

        return run

    def _leaf(self, value: Any) -> Any:
        return self.torch.tensor(value, dtype=self.torch.float64, requires_grad=True)

    def scalars(self) -> Mapping[str, Run]:
        x, q = map(self._leaf, SCALARS)
        return {"PyTorch": self._run(lambda: self._function(x, q), (x, q))}

    def arrays(self) -> Mapping[str, Run]:
        x, q = map(self._leaf, vectors(self.elements))
        return {"PyTorch": self._run(lambda: self._function(x, q).sum(), (x, q))}

    def network(self) -> Mapping[str, Run]:
        given = {n: self._leaf(v) if n in NETWORK_LEAVES else self.torch.tensor(v) for n, v in network().items()}
        inputs, hidden, bias, outer, last, target = given.values()

        def loss() -> Any:
            return ((self.torch.tanh(inputs @ hidden + bias) @ outer + last - target) ** 2).mean()

        return {"PyTorch": self._run(loss, [given[n] for n in NETWORK_LEAVES])}


class TorchCompile(PyTorch):
    """torch.compile for large arrays only; for the other tasks it is no faster."""

    scalars = network = None  # type: ignore[assignment]

    def arrays(self) -> Mapping[str, Run]:
        x, q = map(self._leaf, vectors(self.elements))
        compiled = self.torch.compile(lambda x, q: self._function(x, q).sum())
        return {"torch.compile": self._run(lambda: compiled(x, q), (x, q))}


class Jax(Library):
    def __init__(self, elements: int = ELEMENTS) -> None:
        super().__init__(elements)
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.numpy = importlib.import_module("jax.numpy")

    def _function(self, x: Any, q: Any) -> Any:
        return self.numpy.log(x**q) * self.numpy.sin(x) + self.numpy.exp(-x * x)

    def _run(self, function: Any, leaves: Sequence[Any]) -> Run:
        compiled = self.jax.jit(self.jax.value_and_grad(function, tuple(range(len(leaves)))))

        def run() -> Sequence[Any]:
            value, found = self.jax.block_until_ready(compiled(*leaves))
            return value, *found

        return run

    def scalars(self) -> Mapping[str, Run]:
        return {"JAX jit": self._run(self._function, SCALARS)}

    def arrays(self) -> Mapping[str, Run]:
        leaves = [self.numpy.asarray(v) for v in vectors(self.elements)]
        return {"JAX jit": self._run(lambda x, q: self._function(x, q).sum(), leaves)}

    def network(self) -> Mapping[str, Run]:
        given = {n: self.numpy.asarray(v) for n, v in network().items()}

        def loss(hidden: Any, bias: Any, outer: Any, last: Any) -> Any:
            return ((self.numpy.tanh(given["X"] @ hidden + bias) @ outer + last - given["Y"]) ** 2).mean()

        return {"JAX jit": self._run(loss, [given[n] for n in NETWORK_LEAVES])}


class Autograd(Library):
    def __init__(self, elements: int = ELEMENTS) -> None:
        super().__init__(elements)
        self.numpy = importlib.import_module("autograd.numpy")
        self.value_and_grad = importlib.import_module("autograd").value_and_grad

    def _function(self, x: Any, q: Any) -> Any:
        return self.numpy.log(x**q) * self.numpy.sin(x) + self.numpy.exp(-x * x)

    def _run(self, function: Any, leaves: Sequence[Any]) -> Run:
        differentiated = self.value_and_grad(function, tuple(range(len(leaves))))

        def run() -> Sequence[Any]:
            value, found = differentiated(*leaves)
            return value, *found

        return run

    def scalars(self) -> Mapping[str, Run]:
        return {"HIPS autograd": self._run(self._function, SCALARS)}

    def arrays(self) -> Mapping[str, Run]:
        return {"HIPS autograd": self._run(lambda x, q: self.numpy.sum(self._function(x, q)), vectors(self.elements))}

    def network(self) -> Mapping[str, Run]:
        given = network()

        def loss(hidden: Any, bias: Any, outer: Any, last: Any) -> Any:
            found = self.numpy.tanh(given["X"] @ hidden + bias) @ outer + last
            return self.numpy.mean((found - given["Y"]) ** 2)

        return {"HIPS autograd": self._run(loss, [given[n] for n in NETWORK_LEAVES])}


class Sympy:
    def scalars(self) -> Mapping[str, Run]:
        sympy = importlib.import_module("sympy")
        x, q = sympy.symbols("x q", positive=True)
        y = sympy.log(x**q) * sympy.sin(x) + sympy.exp(-x * x)
        function = sympy.lambdify((x, q), (y, y.diff(x), y.diff(q)), "math", cse=True)
        return {"SymPy lambdify": lambda: function(*SCALARS)}


class Casadi:
    def scalars(self) -> Mapping[str, Run]:
        casadi = importlib.import_module("casadi")
        x, q = casadi.SX.sym("x"), casadi.SX.sym("q")
        y = casadi.log(x**q) * casadi.sin(x) + casadi.exp(-x * x)
        function = casadi.Function("f", [x, q], [y, casadi.gradient(y, x), casadi.gradient(y, q)])
        return {"CasADi": lambda: function(*SCALARS)}


LIBRARIES = {
    "gradcli": Gradcli,
    "SymPy lambdify": Sympy,
    "JAX jit": Jax,
    "CasADi": Casadi,
    "PyTorch": PyTorch,
    "torch.compile": TorchCompile,
    "HIPS autograd": Autograd,
}
TABLES = {
    f"{PROGRAM} at scalars, per call": Comparison(
        "scalars", "SymPy lambdify", 2000, ("µs", 1e-6), "value and gradients"
    ),
    f"sum({PROGRAM}) of {ELEMENTS:,} elements": Comparison(
        "arrays", "PyTorch", 1, ("ms", 1e-3), "value and gradients", given=4 * ELEMENTS * 8 / 2**20
    ),
    "a network of two layers": Comparison("network", "PyTorch", 10, ("ms", 1e-3), "value and gradients"),
}


BESIDE: Mapping[str, type[Library]] = {"NumPy by hand": ByHand, "gradcli": Gradcli, "JAX jit": Jax, "PyTorch": PyTorch}


def fastest(elements: int, rounds: int) -> dict[str, float]:
    """The seconds per call of each library in BESIDE."""
    peers = Peers({name: partial(library, elements) for name, library in BESIDE.items()}, "arrays")
    peers.check()
    for title in peers.results:
        step, end = peers.timer(title, max(1, STEP // elements)), time.perf_counter() + SETTLING
        while time.perf_counter() < end:
            step()
    calls = min(100, max(3, ROUND // elements))
    timers = {title: peers.timer(title, calls) for title in peers.results}
    times = interleaved(timers, rounds, warmups=1)
    peers.close()
    return {title: min(found) for title, (found,) in times.items()}


def by_size(rounds: int) -> str:
    lines = [
        "| elements | " + " | ".join(f"{name}, µs" for name in BESIDE) + " | gradcli, ns an element | "
        "to NumPy | to JAX | to PyTorch |",
        "|" + "---:|" * (len(BESIDE) + 5),
    ]
    for elements in SIZES:
        found = fastest(elements, rounds)
        own = found["gradcli"]
        ratios = [f"{own / found[name]:.2f}" if name in found else "-" for name in BESIDE if name != "gradcli"]
        times = [short(found[name] * 1e6) if name in found else "not installed" for name in BESIDE]
        lines.append("| " + " | ".join([f"{elements:,}", *times, short(own / elements * 1e9), *ratios]) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    options = parser(__doc__, 30)
    options.add_argument("--sizes", action="store_true", help="measure arrays of these sizes alone")
    chosen, _ = options.parse_known_args()
    if chosen.sizes:
        title = f"sum({PROGRAM}) with both gradients, the fastest of {chosen.rounds} rounds"
        publish(chosen, "sizes", circumstances(["torch", "jax", "numpy", "llvmlite"]), {title: by_size(chosen.rounds)})
    else:
        compare(__doc__, "compiled", LIBRARIES, TABLES, PACKAGES, column="value and gradients")
