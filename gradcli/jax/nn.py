"""`jax.nn`: activation functions."""

from __future__ import annotations

from typing import Any

from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import ArgumentError
from gradcli.jax.arrays import returning_tensors
from gradcli.primitives import table

_NAMES = frozenset(
    """
    celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid log_softmax logsumexp mish one_hot
    relu relu6 selu sigmoid silu soft_sign softmax softplus swish tanh
    """.split()  # noqa: SIM905
)
_CALLED = {
    "hard_sigmoid": "hardsigmoid",
    "hard_silu": "hardswish",
    "hard_tanh": "hardtanh",
    "soft_sign": "softsign",
}


def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x**2 + b))/2, which is near relu for a small b."""
    given = as_tensor(x)
    return (given + (given**2 + b).sqrt()) / 2


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None
) -> Any:
    """x less its mean along an axis, divided by its standard deviation; `epsilon` is added to the variance.

    Raises ArgumentError for `where`, which would leave elements out.
    """
    if where is not None:
        raise ArgumentError("standardize takes all elements, and no 'where'")
    given = as_tensor(x)
    center = given.mean(axis, keepdims=True) if mean is None else mean
    spread = (given**2).mean(axis, keepdims=True) - center**2 if variance is None else variance
    return (given - center) * (spread + epsilon).rsqrt()


def __getattr__(name: str) -> Any:
    found = table.find(_CALLED.get(name, name), "jax.nn") if name in _NAMES else None
    if found is None:
        raise AttributeError(f"module 'gradcli.jax.nn' has no attribute {name!r}")
    return returning_tensors(found)
