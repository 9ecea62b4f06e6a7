"""`jax.nn`: activation functions."""

from __future__ import annotations

from typing import Any

from gradcli.jax.arrays import returning_tensors
from gradcli.primitives import table

_NAMES = frozenset(
    """
    celu elu gelu glu hard_swish hard_tanh leaky_relu log_sigmoid log_softmax logsumexp one_hot relu relu6 selu sigmoid silu
    soft_sign softmax softplus swish tanh
    """.split()  # noqa: SIM905
)
_CALLED = {"hard_tanh": "hardtanh", "soft_sign": "softsign"}


def __getattr__(name: str) -> Any:
    found = table.find(_CALLED.get(name, name), "jax.nn") if name in _NAMES else None
    if found is None:
        raise AttributeError(f"module 'gradcli.jax.nn' has no attribute {name!r}")
    return returning_tensors(found)
