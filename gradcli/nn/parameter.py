"""Parameters: the trainable tensors of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.creation_functions import full
from gradcli.autograd.factory import tensor
from gradcli.autograd.tensor import Tensor


class Parameter(Tensor):
    """A leaf that requires grad, with a copy of `data`; as an attribute of a module it becomes one of its parameters.
    Raises DifferentiationError for integers, unless `requires_grad` is False."""

    __slots__ = ()

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        super().__init__(tensor(data).inner)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def filled(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one value; in the default dtype unless `dtype` is given."""
    return full(tuple(shape), value, dtype=dtype or arrays.default_dtype(), device=device)


def parameter(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter filled with one value; see `filled`."""
    return Parameter(filled(shape, value, dtype=dtype, device=device))
