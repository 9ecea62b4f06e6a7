"""Measures the value and the gradients of each of many rows, in Python.

gradcli's `value_and_grad(rows=True)` against compiled `jax.vmap(jax.value_and_grad)` and PyTorch's
`vmap(grad_and_value)`, each in its own process and called in turn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from processes import Comparison, Run, compare

PROGRAM = "sin(q*log(x))*exp(-x)"
# A formula of the size that people fit: more than 40 operations, none of them expensive.
RATIONAL = "((((a*x + b)*x + c)*x + d)*x + 1)/((((b*x + c)*x + d)*x + a)*x + 2) + sqrt(1 + x*x)*abs(a - b)/(1 + c*c)"
BRANCH = "log(x)*q if x > 1 else x*x*q"
ROWS = 1_000_000


def columns(names: str) -> dict[str, Any]:
    import numpy as np

    draw = np.random.default_rng(0)
    return {name: draw.random(ROWS) + 0.5 for name in names}


class Gradcli:
    def waves(self) -> Mapping[str, Run]:
        return {"gradcli": self._run(PROGRAM, "xq")}

    def rational(self) -> Mapping[str, Run]:
        return {"gradcli": self._run(RATIONAL, "xabcd")}

    def branch(self) -> Mapping[str, Run]:
        return {"gradcli": self._run(BRANCH, "xq")}

    def _run(self, text: str, names: str) -> Run:
        import gradcli

        program, values = gradcli.compile(text), columns(names)

        def run() -> Sequence[Any]:
            value, found = program.value_and_grad(values, rows=True)
            return value, *(found[n] for n in names)

        return run


class _Functional:
    """The same tasks with the functions of a library."""

    numpy: Any

    def waves(self) -> Mapping[str, Run]:
        return self._mapped(lambda x, q: self.numpy.sin(q * self.numpy.log(x)) * self.numpy.exp(-x), "xq")

    def rational(self) -> Mapping[str, Run]:
        def function(x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
            over = (((a * x + b) * x + c) * x + d) * x + 1
            under = (((b * x + c) * x + d) * x + a) * x + 2
            return over / under + self.numpy.sqrt(1 + x * x) * self.numpy.abs(a - b) / (1 + c * c)

        return self._mapped(function, "xabcd")

    def branch(self) -> Mapping[str, Run]:
        return self._mapped(lambda x, q: self.numpy.where(x > 1, self.numpy.log(x) * q, x * x * q), "xq")

    def _mapped(self, function: Callable[..., Any], names: str) -> Mapping[str, Run]:
        raise NotImplementedError


class Jax(_Functional):
    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.numpy = importlib.import_module("jax.numpy")

    def _mapped(self, function: Callable[..., Any], names: str) -> Mapping[str, Run]:
        leaves = [self.numpy.asarray(column) for column in columns(names).values()]
        mapped = self.jax.jit(self.jax.vmap(self.jax.value_and_grad(function, tuple(range(len(leaves))))))

        def run() -> Sequence[Any]:
            value, found = self.jax.block_until_ready(mapped(*leaves))
            return value, *found

        return {"JAX jit vmap": run}


class PyTorch(_Functional):
    def __init__(self) -> None:
        self.numpy = importlib.import_module("torch")
        self.func = importlib.import_module("torch.func")

    def _mapped(self, function: Callable[..., Any], names: str) -> Mapping[str, Run]:
        leaves = [self.numpy.tensor(column) for column in columns(names).values()]
        mapped = self.func.vmap(self.func.grad_and_value(function, argnums=tuple(range(len(leaves)))))

        def run() -> Sequence[Any]:
            found, value = mapped(*leaves)
            return value, *found

        return {"torch.func vmap": run}


LIBRARIES = {"gradcli": Gradcli, "JAX": Jax, "PyTorch": PyTorch}
TABLES = {
    f"{title} of {ROWS:,} rows": Comparison(kind, "gradcli", 1, ("ms", 1e-3), "value and gradients")
    for title, kind in ((PROGRAM, "waves"), (RATIONAL, "rational"), (BRANCH, "branch"))
}


if __name__ == "__main__":
    compare(__doc__, "row_gradients", LIBRARIES, TABLES, ["torch", "jax", "numpy"], column="value and gradients")
