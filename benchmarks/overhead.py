"""Measures the overhead of recorded operations on scalars, forward and backward, and of training steps on small arrays.

The same chain of 300 operations in gradcli, PyTorch, HIPS autograd and MyGrad, in one process and in turn; times are
per operation of the chain. Training steps are measured in gradcli and PyTorch, on one thread and in float64, from the
same numbers.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from measure import Row, arguments, circumstances, interleaved, show, table, write_json

BASELINE = "PyTorch"
START = 0.7
LENGTH = 300
COLUMNS = ["forward", "backward", "both, and freeing the graph"]
PACKAGES = ["torch", "autograd", "mygrad", "numpy"]

Chain = Callable[[Any], Any]


class Library(NamedTuple):
    """A library: its functions, and how to create a leaf, record a chain, run backward and read the gradient."""

    functions: Any
    leaf: Callable[[float], Any]
    record: Callable[[Chain, Any], Any]
    backward: Callable[[Any], object]
    gradient: Callable[[Any, object], float]


def trigonometric(functions: Any) -> Chain:
    """sin, a product with the leaf, and a sum with a constant; 100 times."""
    sin = functions.sin

    def chain(x: Any) -> Any:
        y = x
        for _ in range(LENGTH // 3):
            y = sin(y)
            y = y * x
            y = y + 1.0
        return y

    return chain


def exponential(functions: Any) -> Chain:
    """exp, log, a quotient by the leaf, and a power with the leaf as exponent; 75 times."""
    exp, log = functions.exp, functions.log

    def chain(x: Any) -> Any:
        y = x
        for _ in range(LENGTH // 4):
            y = exp(y)
            y = log(y)
            y = y / x
            y = y**x
        return y

    return chain


CHAINS = {"sin, mul, add": trigonometric, "exp, log, div, pow": exponential}


def with_gradcli() -> Library:
    import gradcli

    return _by_backward(gradcli, lambda x: gradcli.tensor(x, requires_grad=True))


def with_torch() -> Library:
    torch = importlib.import_module("torch")
    return _by_backward(torch, lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True))


def with_mygrad() -> Library:
    mygrad = importlib.import_module("mygrad")
    return _by_backward(mygrad, mygrad.tensor)


def _by_backward(functions: Any, leaf: Callable[[float], Any]) -> Library:
    """A library in which a result has `backward()` and a leaf has `.grad`."""
    return Library(functions, leaf, lambda chain, x: chain(x), lambda y: y.backward(), lambda x, _: float(x.grad))


def with_autograd() -> Library:
    functions = importlib.import_module("autograd.numpy")
    core = importlib.import_module("autograd.core")
    wrap_util = importlib.import_module("autograd.wrap_util")
    # The steps of autograd.grad, with forward and backward separated.
    record = wrap_util.unary_to_nary(core.make_vjp)
    return Library(
        functions,
        float,
        lambda chain, x: record(chain)(x),
        lambda recorded: recorded[0](1.0),
        lambda _, gradient: float(gradient),  # type: ignore[arg-type]
    )


LIBRARIES = {
    "gradcli": with_gradcli,
    "PyTorch": with_torch,
    "HIPS autograd": with_autograd,
    "MyGrad": with_mygrad,
}


def timer(library: Library, chain: Chain) -> Callable[[], Sequence[float]]:
    clock = time.perf_counter

    def job() -> Sequence[float]:
        x = library.leaf(START)
        start = clock()
        recorded = library.record(chain, x)
        middle = clock()
        library.backward(recorded)
        end = clock()
        del recorded
        freed = clock()
        return tuple(t / LENGTH for t in (middle - start, end - middle, freed - start))

    return job


def gradient(library: Library, chain: Chain) -> float:
    x = library.leaf(START)
    return library.gradient(x, library.backward(library.record(chain, x)))


def load() -> tuple[dict[str, Library], list[Row]]:
    """The libraries by name, and rows for those that are missing or do not work."""
    found, missing = {}, []
    for name, make in LIBRARIES.items():
        try:
            found[name] = make()
        except ImportError as error:
            missing.append(Row(name, missing=str(error)))
    return found, missing


def measured(libraries: dict[str, Library], kind: Callable[[Any], Chain], rounds: int) -> list[Row]:
    """A row per library; all of them must find the same gradient."""
    jobs, missing, found = {}, [], {}
    for name, library in libraries.items():
        chain = kind(library.functions)
        try:
            found[name] = gradient(library, chain)
            jobs[name] = timer(library, chain)
        except Exception as error:
            missing.append(Row(name, missing=f"does not work: {error}"))
    if not all(math.isclose(g, next(iter(found.values())), rel_tol=1e-9) for g in found.values()):
        sys.exit(f"error: the gradients differ: {found}")
    return [Row(name, times) for name, times in interleaved(jobs, rounds, warmups=20).items()] + missing


Step = Callable[[], Any]


def drawn(library: Any, *shape: int, seed: int, requires_grad: bool = False) -> Any:
    """A tensor of numbers between -1/2 and 1/2, the same in each library."""
    source = random.Random(seed)

    def nested(sizes: Sequence[int]) -> Any:
        return [nested(sizes[1:]) for _ in range(sizes[0])] if sizes else source.uniform(-0.5, 0.5)

    return library.tensor(nested(shape), requires_grad=requires_grad)


def layers(library: Any, *widths: int) -> list[Any]:
    """The weight and the bias of each layer of a network."""
    shapes = [s for before, after in itertools.pairwise(widths) for s in ((after, before), (after,))]
    return [drawn(library, *shape, seed=seed, requires_grad=True) for seed, shape in enumerate(shapes)]


def perceptron(library: Any) -> Step:
    """A training step of a two-layer network with 32 rows: loss, backward, and a step of Adam."""
    functional = library.nn.functional
    w_1, b_1, w_2, b_2 = layers(library, 4, 16, 1)
    x, y = drawn(library, 32, 4, seed=10), drawn(library, 32, 1, seed=11)
    optimizer = library.optim.Adam([w_1, b_1, w_2, b_2], lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        hidden = library.tanh(functional.linear(x, w_1, b_1))
        loss = functional.mse_loss(functional.linear(hidden, w_2, b_2), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def recurrent(library: Any) -> Step:
    """A recurrent network over 100 time steps, and backward through them."""
    w_x, bias = layers(library, 4, 8)
    w_h = drawn(library, 8, 8, seed=12, requires_grad=True)
    series = [drawn(library, 16, 4, seed=20 + k) for k in range(100)]
    start = 0.0 * drawn(library, 16, 8, seed=13)

    def step() -> Any:
        hidden = start
        for x in series:
            hidden = library.tanh(x @ w_x.T + hidden @ w_h.T + bias)
        loss = (hidden**2).mean()
        loss.backward()
        w_x.grad = w_h.grad = bias.grad = None
        return loss

    return step


def equation(library: Any) -> Step:
    """The residual of u'' + u = 0 for a network at 32 points, and backward: the gradient of second derivatives."""
    functional, grad = library.nn.functional, library.autograd.grad
    w_1, b_1, w_2, b_2, w_3, b_3 = parameters = layers(library, 1, 16, 16, 1)
    t = drawn(library, 32, 1, seed=14, requires_grad=True)

    def step() -> Any:
        hidden = library.tanh(functional.linear(t, w_1, b_1))
        hidden = library.tanh(functional.linear(hidden, w_2, b_2))
        u = functional.linear(hidden, w_3, b_3)
        (slope,) = grad(u.sum(), t, create_graph=True)
        (curvature,) = grad(slope.sum(), t, create_graph=True)
        loss = ((curvature + u) ** 2).mean()
        loss.backward()
        for leaf in (*parameters, t):
            leaf.grad = None
        return loss

    return step


def mapped(library: Any) -> Step:
    """The gradient of a loss for each of 16 rows, by vmap(grad)."""
    w, xs, ys = drawn(library, 4, seed=15), drawn(library, 16, 4, seed=16), drawn(library, 16, seed=17)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return (library.tanh(library.dot(w, x)) - y) ** 2

    gradients = library.func.vmap(library.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(w, xs, ys).sum()


def few_elements(library: Any) -> Step:
    """30 operations on tensors of three elements, and backward."""
    x, factor = drawn(library, 3, seed=18, requires_grad=True), drawn(library, 3, seed=19, requires_grad=True)

    def step() -> Any:
        y = x
        for _ in range(10):
            y = library.sin(y) * factor + 1.0
        total = y.sum()
        total.backward()
        x.grad = factor.grad = None
        return total

    return step


STEPS: dict[str, Callable[[Any], Step]] = {
    "MLP and Adam": perceptron,
    "RNN of 100 steps": recurrent,
    "PINN": equation,
    "vmap(grad)": mapped,
    "30 operations on 3 elements": few_elements,
}


def steps(rounds: int) -> dict[str, list[Row]]:
    """The step times of each program; both libraries must compute the same loss."""
    import gradcli

    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    tables = {}
    for name, make in STEPS.items():
        made = {"gradcli": make(gradcli), BASELINE: make(torch)}
        losses = {library: float(step().detach()) for library, step in made.items()}
        if not math.isclose(*losses.values(), rel_tol=1e-9):
            sys.exit(f"error: the losses of {name} differ: {losses}")
        times = interleaved({library: _timed(step) for library, step in made.items()}, rounds, warmups=5)
        tables[name] = [Row(library, seconds) for library, seconds in times.items()]
    return tables


def _timed(step: Step) -> Callable[[], Sequence[float]]:
    def job() -> Sequence[float]:
        start = time.thread_time()
        step()
        return (time.thread_time() - start,)

    return job


def main() -> None:
    options = arguments(__doc__, rounds=1000)
    libraries, missing = load()
    # The garbage collector stays on, as for a user, but skips the objects of the loaded libraries.
    gc.collect()
    gc.freeze()
    tables = {name: measured(libraries, kind, options.rounds) + missing for name, kind in CHAINS.items()}
    about = circumstances(PACKAGES)
    shown = {
        f"{name}, per operation, {options.rounds} rounds": table(rows, COLUMNS, ("µs", 1e-6), BASELINE)
        for name, rows in tables.items()
    }
    if "PyTorch" in libraries:
        # A step takes as long as some hundred operations, so fewer rounds suffice.
        rounds = max(options.rounds // 10, 2)
        of_steps = steps(rounds)
        shown |= {f"{n}, {rounds} rounds": table(r, ["a step"], ("µs", 1e-6), BASELINE) for n, r in of_steps.items()}
        tables |= of_steps
    show(about, shown)
    if options.json:
        write_json(options.json, about, tables, COLUMNS)


if __name__ == "__main__":
    main()
