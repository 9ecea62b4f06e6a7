"""`autograd.test_util`: `check_grads` compares derivatives with central differences along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import numpy as np
from gradcli.calculus.checks.finite_differences import central_differences
from gradcli.calculus.functions.differential_operators import grad, make_jvp, make_vjp
from gradcli.errors import ArgumentError, GradcheckError
from gradcli.misc.flatten import flatten
from gradcli.numpy import random

# Step of the differences, and the absolute and relative tolerance, as in `autograd.test_util`.
_STEP = _TOLERANCE = 1e-6


def check_grads(
    f: Callable[..., Any], argnum: int = 0, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> Callable[..., None]:
    """A function of arguments that compares derivatives of `f` by argument number `argnum` with central differences.

    `modes` are "rev" and "fwd"; derivatives are checked up to `order`. The function raises GradcheckError where one
    differs by more than 1e-6, absolute and relative; `check_grads` raises ArgumentError for other modes.
    """
    if not set(modes) <= {"fwd", "rev"} or not modes:
        raise ArgumentError(f"the modes of a check are 'fwd' and 'rev', not {modes!r}")

    def check(*arguments: Any, **keywords: Any) -> None:
        def of_one(x: Any) -> Any:
            return f(*(x if i == argnum else a for i, a in enumerate(arguments)), **keywords)

        _check(of_one, arguments[argnum], modes, order)

    return check


def _check(f: Callable[[Any], Any], x: Any, modes: Sequence[str], order: int) -> None:
    if order < 1:
        return
    vector, unflatten = flatten(x)
    value, _ = flatten(f(x))
    direction, weights = random.randn(len(vector)), random.randn(len(value))

    def weighted(x: Any) -> Any:
        return np.sum(flatten(f(x))[0] * weights)

    def along(x: Any) -> Any:
        return make_jvp(f)(x)(unflatten(direction))[1]

    if "rev" in modes:
        _compare("reverse", weighted, vector, unflatten, direction, np.dot(flatten(grad(weighted)(x))[0], direction))
        _check(lambda x: make_vjp(lambda x: flatten(f(x))[0])(x)[0](weights), x, modes, order - 1)
    if "fwd" in modes:
        _compare("forward", weighted, vector, unflatten, direction, np.dot(flatten(along(x))[0], weights))
        _check(along, x, modes, order - 1)


def _compare(
    mode: str, weighted: Callable[[Any], Any], vector: Any, unflatten: Callable[[Any], Any], direction: Any, found: Any
) -> None:
    (differences,) = central_differences(lambda t: [weighted(unflatten(vector + t * direction))], 0.5 * _STEP)
    gap = abs(differences - found)
    if not (gap < _TOLERANCE or gap < _TOLERANCE * abs(differences + found)):
        raise GradcheckError(
            f"the derivative in {mode} mode along a random direction is {float(found)}, and differences give "
            f"{float(differences)}"
        )
