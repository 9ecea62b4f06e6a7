"""Measures function transformations: gradients and Hessian-vector products of many rows, and directional
derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from processes import Comparison, Run, compare

ROWS, COLUMNS = 10_000, 4
PACKAGES = ["torch", "jax", "numpy"]


def points(seed: int) -> Any:
    import numpy as np

    return np.random.default_rng(seed).normal(size=(ROWS, COLUMNS))


class Library:
    """A library: its module of functions, its module of transformations, and its tensors of points and directions."""

    name: str
    functions: Any
    func: Any

    def tensors(self) -> tuple[Any, Any]:
        return self.functions.tensor(points(0)), self.functions.tensor(points(1))

    def done(self, value: Any) -> Any:
        return value

    def compiled(self, function: Any) -> Any:
        return function

    def energy(self, x: Any) -> Any:
        return (self.functions.sin(x) * self.functions.exp(-x * x)).sum()

    def gradients(self) -> Mapping[str, Run]:
        (x, _), function = self.tensors(), self.compiled(self.func.vmap(self.func.grad(self.energy)))
        return {self.name: lambda: [self.done(function(x))]}

    def hessian_products(self) -> Mapping[str, Run]:
        x, v = self.tensors()
        along = self.func.vmap(lambda x, v: self.func.jvp(self.func.grad(self.energy), (x,), (v,))[1])
        function = self.compiled(along)
        return {self.name: lambda: [self.done(function(x, v))]}

    def directions(self) -> Mapping[str, Run]:
        (x, v), m = self.tensors(), self.functions
        function = self.compiled(lambda x, v: self.func.jvp(lambda x: m.sin(x) * m.exp(-x * x), (x,), (v,))[1])
        return {self.name: lambda: [self.done(function(x, v))]}


class Gradcli(Library):
    name = "gradcli"

    def __init__(self) -> None:
        self.functions, self.func = importlib.import_module("gradcli"), importlib.import_module("gradcli.func")

    def done(self, value: Any) -> Any:
        return value.numpy()


class PyTorch(Library):
    name = "PyTorch"

    def __init__(self) -> None:
        self.functions = importlib.import_module("torch")
        self.func = self.functions.func


class Jax(Library):
    name = "JAX jit"

    def __init__(self) -> None:
        self.func = importlib.import_module("jax")
        self.func.config.update("jax_enable_x64", True)
        self.functions = self.func.numpy

    def tensors(self) -> tuple[Any, Any]:
        return self.functions.asarray(points(0)), self.functions.asarray(points(1))

    def compiled(self, function: Any) -> Any:
        return self.func.jit(function)

    def done(self, value: Any) -> Any:
        return self.func.block_until_ready(value)


LIBRARIES = {library.name: library for library in (Gradcli, PyTorch, Jax)}
OF = f"sum(sin(x)*exp(-x*x)) of {ROWS:,} rows of {COLUMNS}"
TABLES = {
    f"vmap(grad), {OF}": Comparison("gradients", "PyTorch", 5, ("ms", 1e-3), "gradients"),
    f"vmap(jvp(grad)), {OF}": Comparison("hessian_products", "PyTorch", 5, ("ms", 1e-3), "products with Hessians"),
    f"jvp of sin(x)*exp(-x*x), {ROWS:,} by {COLUMNS}": Comparison(
        "directions", "PyTorch", 5, ("ms", 1e-3), "derivative"
    ),
}


if __name__ == "__main__":
    compare(__doc__, "functions", LIBRARIES, TABLES, PACKAGES)
