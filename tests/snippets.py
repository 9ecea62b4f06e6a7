"""Computes the reference results of the snippets in tests/data/snippets, in Python with their own libraries.

A snippet is a file that ends in a function, whose parameters are the inputs, or in an expression or assignment over
free names. `python -m tests.snippets` runs each and writes its value and its gradient by each input to references.json:
by the library's own derivatives for PyTorch and JAX, which must be installed, and by central differences for NumPy and
plain Python. The gradient of an array is that of its sum.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special

DATA = Path(__file__).parent / "data/snippets"
INPUTS = DATA / "inputs.json"
REFERENCES = DATA / "references.json"
# The libraries whose snippets are differentiated by differences here; the others need their libraries.
BY_DIFFERENCES = ("numpy", "python")
# The factor between the steps of Ridders' method, and the number of steps.
_SHRINKS, _STEPS = 1.5, 12
_FIRST_STEPS = (0.1, 0.02, 0.004)
# The required relative error of a derivative, and the one that ends the search for a better one.
_TOLERANCE, _CLOSE = 1e-6, 1e-9


class Snippet(NamedTuple):
    """A program as it is pasted, and the values of its inputs."""

    name: str
    text: str
    inputs: dict[str, Any]

    @property
    def folder(self) -> str:
        return self.name.partition("/")[0]

    @property
    def path(self) -> Path:
        return DATA / f"{self.name}.py"

    @property
    def leaves(self) -> dict[str, Any]:
        """The inputs to differentiate by: those with a number written with a decimal point."""
        return {name: value for name, value in self.inputs.items() if is_float(value)}


def snippets(*libraries: str) -> list[Snippet]:
    """All snippets for these libraries."""
    inputs = json.loads(INPUTS.read_text())
    found = (Snippet(name, (DATA / f"{name}.py").read_text(), values) for name, values in inputs.items())
    return [s for s in found if s.folder in libraries]


def is_float(value: Any) -> bool:
    return any(map(is_float, value)) if isinstance(value, list) else isinstance(value, float)


def result(snippet: Snippet, values: dict[str, Any]) -> Any:
    """The result of the snippet for these values, run by Python."""
    *before, last = ast.parse(snippet.text, str(snippet.path)).body
    names = {**_prefixes(snippet.folder), **values}
    tail = [] if isinstance(last, ast.Expr) else [last]
    exec(compile(ast.Module([*before, *tail], []), str(snippet.path), "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), str(snippet.path), "eval"), names)
    if isinstance(last, ast.FunctionDef):
        function = names[last.name]
        return function(**{p: values[p] for p in inspect.signature(function).parameters if p in values})
    assert isinstance(last, ast.Assign)
    return names[ast.unparse(last.targets[0])]


def reference(snippet: Snippet) -> dict[str, Any]:
    """Its value, and its gradient by each floating-point input: null where PyTorch has none."""
    return {"numpy": _numpy, "python": _python, "torch": _torch, "jax": _jax}[snippet.folder](snippet)


def _prefixes(folder: str) -> dict[str, Any]:
    """The names that a snippet without imports may use."""
    names: dict[str, Any] = {"math": math}
    if folder == "numpy":
        names |= {"np": np, "special": scipy.special}
    elif folder == "torch":
        import torch
        import torch.nn.functional as F  # noqa: N812

        names |= {"torch": torch, "F": F}
    elif folder == "jax":
        import jax
        import jax.numpy as jnp

        names |= {"jax": jax, "jnp": jnp}
    return names


def _numpy(snippet: Snippet) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        return np.array(value) if isinstance(value, list) else value

    return _by_differences(snippet, convert)


def _python(snippet: Snippet) -> dict[str, Any]:
    return _by_differences(snippet, copy.deepcopy)


def _by_differences(snippet: Snippet, convert: Callable[[Any], Any]) -> dict[str, Any]:
    def value(changed: dict[str, Any]) -> Any:
        return np.array(result(snippet, {n: convert(v) for n, v in (snippet.inputs | changed).items()}), float)

    gradients = {}
    with np.errstate(all="ignore"):
        for name, given in snippet.leaves.items():
            at = np.array(given, float)

            def along(i: int, moved: float, name: str = name, at: np.ndarray = at) -> float:
                changed = at.copy()
                changed.flat[i] = moved
                return float(value({name: changed.tolist()}).sum())

            gradients[name] = _gradient(along, at, f"{snippet.name} by {name}")
    return {"value": value({}).tolist(), "grad": gradients}


def _gradient(along: Callable[[int, float], float], at: np.ndarray, what: str) -> Any:
    """The derivatives by each element; those within their error are 0."""
    scale = float(np.max(np.abs(at))) or 1.0
    found = []
    for i, x in enumerate(at.flat):
        unit = max(abs(x), 0.1 * scale)
        best, error = math.nan, math.inf
        for step in _FIRST_STEPS:
            if not error <= _CLOSE * abs(best):
                again = _ridders(lambda moved, i=i: along(i, moved), x, step * unit)
                best, error = min((best, error), again, key=lambda f: f[1])
        found.append((best, error))
    largest = max(abs(d) for d, _ in found)
    noise = max(1e-9 * largest, 1e-10 * abs(along(0, float(at.flat[0]))) / scale)
    for derivative, error in found:
        assert error <= max(_TOLERANCE * abs(derivative), noise), (what, derivative, error)
    digits = [0.0 if abs(d) <= noise else float(f"{d:.11g}") for d, _ in found]
    return np.reshape(digits, at.shape).tolist()


def _ridders(function: Callable[[float], float], x: float, step: float) -> tuple[float, float]:
    """The derivative and its error: central differences with decreasing steps, extrapolated to step 0 (Ridders)."""
    best, error = math.nan, math.inf
    row: list[float] = []
    for _ in range(_STEPS):
        try:
            difference = (function(x + step) - function(x - step)) / (2 * step)
        except (ValueError, ZeroDivisionError):
            difference = math.nan
        above, row = row, [difference]
        for k, old in enumerate(above):
            power = _SHRINKS ** (2 * k + 2)
            row.append((power * row[k] - old) / (power - 1))
            off = max(abs(row[k + 1] - row[k]), abs(row[k + 1] - old))
            if off <= error:
                best, error = row[k + 1], off
        if error <= _CLOSE * abs(best):
            break
        step /= _SHRINKS
    return best, error


@contextmanager
def _doubles_of_torch() -> Iterator[Any]:
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield torch
    finally:
        torch.set_default_dtype(before)


def _torch(snippet: Snippet) -> dict[str, Any]:
    with _doubles_of_torch() as torch:
        leaves = {n: torch.tensor(v, requires_grad=True) for n, v in snippet.leaves.items()}
        whole = {n: torch.tensor(v) if isinstance(v, list) else v for n, v in snippet.inputs.items()}
        value = result(snippet, whole | leaves)
        gradients = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True)
    found = {n: None if g is None else g.tolist() for n, g in zip(leaves, gradients)}
    return {"value": value.tolist(), "grad": found}


def _jax(snippet: Snippet) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        whole = {n: jnp.array(v) if isinstance(v, list) else v for n, v in snippet.inputs.items()}
        leaves = {n: jnp.array(v) for n, v in snippet.leaves.items()}

        def total(leaves: dict[str, Any]) -> Any:
            return jnp.sum(result(snippet, whole | leaves))

        # while_loop has no reverse mode.
        gradients = (jax.jacfwd if "while_loop" in snippet.text else jax.grad)(total)(leaves)
        value = result(snippet, whole | leaves)
        return {"value": value.tolist(), "grad": {n: gradients[n].tolist() for n in leaves}}


def main() -> None:
    found = {s.name: reference(s) for s in snippets("numpy", "torch", "jax", "python")}
    lines = (f"{json.dumps(name)}: {json.dumps(r, allow_nan=False)}" for name, r in found.items())
    REFERENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
