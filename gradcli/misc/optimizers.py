"""Optimizers for functions of any container of arrays, given the gradient `grad(parameters, iteration)`.

Each has the formula of `autograd.misc.optimizers`, whose initial states differ from those of `gradcli.optim`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli import numpy as np
from gradcli.misc.flatten import flatten

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any]


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Make an optimizer of vectors work on any container."""

    @functools.wraps(optimize)
    def of_container(grad: Gradient, x0: Any, callback: Callback | None = None, *arguments: Any, **options: Any) -> Any:
        vector, unflatten = flatten(x0)

        def gradient(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def told(x: Any, i: int, g: Any) -> Any:
            assert callback is not None
            return callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(gradient, vector, told if callback else None, *arguments, **options))

    return of_container


@unflatten_optimizer
def sgd(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum."""
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Gradient steps divided by the root of the running mean of squared gradients."""
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean_square = mean_square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam, as described in http://arxiv.org/pdf/1412.6980.pdf."""
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean = (1 - b1) * g + b1 * mean
        mean_square = (1 - b2) * g**2 + b2 * mean_square
        unbiased, unbiased_square = mean / (1 - b1 ** (i + 1)), mean_square / (1 - b2 ** (i + 1))
        x = x - step_size * unbiased / (np.sqrt(unbiased_square) + eps)
    return x
