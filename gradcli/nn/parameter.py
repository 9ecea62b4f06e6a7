"""A tensor that a module is fitted by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.factory import tensor
from gradcli.autograd.filled import full
from gradcli.autograd.tensor import Tensor


class Parameter(Tensor):
    """A leaf that requires grad, with a copy of numbers as `tensor` takes them; as an attribute of a module it is one of
    its parameters. Raises DifferentiationError for integers, unless `requires_grad` is False."""

    __slots__ = ()

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        super().__init__(tensor(data).inner)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def filled(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of a shape with one value everywhere, of the default dtype where none is said."""
    return full(tuple(shape), value, dtype=dtype or arrays.default_dtype(), device=device)


def parameter(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter of a shape; see `filled`."""
    return Parameter(filled(shape, value, dtype=dtype, device=device))
