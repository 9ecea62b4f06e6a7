"""Fixed points of functions, and their derivatives by implicit differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import numpy as np
from gradcli.calculus.functions.custom_rules import Rule
from gradcli.calculus.functions.differential_operators import as_array, make_vjp
from gradcli.calculus.functions.pytrees import mapped
from gradcli.numpy.dispatch import has_tensors


def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float
) -> Any:
    """The fixed point x = f(a)(x), by iteration from `x0` until `distance` between consecutive iterates is at most
    `tol`.

    It is differentiable by `a` in reverse mode.
    """

    def run(a: Any) -> Any:
        step = f(a)
        x, following = x0, step(x0)
        while distance(x, following) > tol:
            x, following = following, step(following)
        return following

    def pull(given: tuple[Any, ...], x: Any, g: Any) -> tuple[Any]:
        (a,) = given
        pull_a, _ = make_vjp(lambda a: f(a)(x))(a)
        # The sum of g times the powers of the Jacobian by x, computed as a fixed point of the adjoint step.
        return (pull_a(fixed_point(_adjoint_step, (a, x, g), g, distance, tol)),)

    def _adjoint_step(given: Any) -> Callable[[Any], Any]:
        a, x, g = given
        pull_x, _ = make_vjp(f(a))(x)
        return lambda u: mapped(np.add, g, pull_x(u))

    if not has_tensors(a):
        return run(a)
    return Rule(lambda a: run(mapped(as_array, a)), pull, (a,)).applied()
