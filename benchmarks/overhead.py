"""What one recorded operation on scalars costs, forward and backward.

The same chain of 300 operations in gradcli, PyTorch, HIPS autograd and MyGrad, in one process and
in turn; times are per operation of the chain.
"""

from __future__ import annotations

import gc
import importlib
import math
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
    """A way to record: the functions that the chains use, how to make a leaf, how to go back."""

    functions: Any
    leaf: Callable[[float], Any]
    record: Callable[[Chain, Any], Any]
    backward: Callable[[Any], object]
    gradient: Callable[[Any, object], float]


def trigonometric(functions: Any) -> Chain:
    """sin, a product with the leaf, a sum with a constant; 100 times."""
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
    """exp, log, a quotient by the leaf, a power with the leaf as exponent; 75 times."""
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
    # What autograd.grad does, with a break between its two halves.
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


def main() -> None:
    options = arguments(__doc__, rounds=1000)
    libraries, missing = load()
    # The collector is left on, as it is for a user, but need not look at what the libraries loaded.
    gc.collect()
    gc.freeze()
    tables = {name: measured(libraries, kind, options.rounds) + missing for name, kind in CHAINS.items()}
    about = circumstances(PACKAGES)
    show(
        about,
        {
            f"{name}, per operation, {options.rounds} rounds": table(rows, COLUMNS, ("µs", 1e-6), BASELINE)
            for name, rows in tables.items()
        },
    )
    if options.json:
        write_json(options.json, about, tables, COLUMNS)


if __name__ == "__main__":
    main()
