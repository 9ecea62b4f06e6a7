"""Measures repeated higher-order derivatives: of a scalar up to order 80, and dense and sparse Hessians."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from processes import Comparison, Run, compare

SERIES = "sin(x**2)*exp(x)/x"
ORDERS = (5, 10, 20, 40, 80)
ROSENBROCK = "sum(100*(x[1:]-x[:-1]**2)**2 + (1-x[:-1])**2)"
VARIABLES, SPARSE_VARIABLES = 200, 100_000
PACKAGES = ["torch", "jax", "casadi", "numpy", "scipy"]


def points(number: int) -> Any:
    import numpy as np

    return np.linspace(0.5, 1.5, number)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


class Gradcli:
    def __init__(self) -> None:
        self.compile = importlib.import_module("gradcli").compile

    def orders(self) -> Mapping[str, Run]:
        program, values = self.compile(SERIES), {"x": 1.3}
        # Only the derivatives up to the lowest order are compared.
        return {
            f"gradcli, order {n}": lambda n=n: program.derivatives(values, n)[: ORDERS[0]]  # type: ignore[misc]
            for n in ORDERS
        }

    def dense(self) -> Mapping[str, Run]:
        program, values = self.compile(ROSENBROCK), {"x": points(VARIABLES)}
        return {"gradcli": lambda: [program.hessian(values)["x,x"]]}

    def sparse(self) -> Mapping[str, Run]:
        program, values = self.compile(ROSENBROCK), {"x": points(SPARSE_VARIABLES)}

        def once() -> Sequence[Any]:
            return [self.compile(ROSENBROCK).hessian(values, sparse=True)["x,x"].value]

        return {"gradcli": lambda: [program.hessian(values, sparse=True)["x,x"].value], "gradcli, first call": once}


class Jax:
    def dense(self) -> Mapping[str, Run]:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        x, compiled = jax.numpy.asarray(points(VARIABLES)), jax.jit(jax.hessian(rosenbrock))
        return {"JAX jit": lambda: [jax.block_until_ready(compiled(x))]}


class Casadi:
    def _hessian(self, number: int) -> Any:
        casadi = importlib.import_module("casadi")
        x = casadi.SX.sym("x", number)
        y = casadi.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return casadi.Function("h", [x], [casadi.hessian(y, x)[0]])

    def dense(self) -> Mapping[str, Run]:
        function, x = self._hessian(VARIABLES), points(VARIABLES)
        return {"CasADi": lambda: [function(x).full()]}

    def sparse(self) -> Mapping[str, Run]:
        function, x = self._hessian(SPARSE_VARIABLES), points(SPARSE_VARIABLES)
        return {"CasADi": lambda: [function(x).nonzeros()]}


class PyTorch:
    def dense(self) -> Mapping[str, Run]:
        torch = importlib.import_module("torch")
        x, hessian = torch.tensor(points(VARIABLES)), torch.func.hessian(rosenbrock)
        return {"PyTorch": lambda: [hessian(x)]}


LIBRARIES = {"gradcli": Gradcli, "JAX jit": Jax, "CasADi": Casadi, "PyTorch": PyTorch}
TABLES = {
    f"{SERIES} at a number, per call": Comparison("orders", "gradcli, order 20", 200, ("µs", 1e-6), "all derivatives"),
    f"{ROSENBROCK} of {VARIABLES} variables": Comparison("dense", "JAX jit", 50, ("µs", 1e-6), "Hessian"),
    f"{ROSENBROCK} of {SPARSE_VARIABLES:,} variables": Comparison(
        "sparse", "gradcli", 1, ("ms", 1e-3), "sparse Hessian"
    ),
}


if __name__ == "__main__":
    compare(__doc__, "hessians", LIBRARIES, TABLES, PACKAGES)
