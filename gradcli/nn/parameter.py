"""Parameters: the trainable tensors of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.creation.creation_functions import full
from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError


class Parameter(Tensor):
    """A leaf that requires grad, with a copy of `data`; as an attribute of a module it becomes one of its parameters.
    Raises DifferentiationError for integers, unless `requires_grad` is False."""

    __slots__ = ()

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        super().__init__(tensor(data).inner)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class UninitializedParameter(Parameter):
    """The parameter of a lazy layer, which has no values before the first call of the layer.

    Reading them raises ArgumentError, and reading the shape EvaluationError, as in PyTorch.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)
        del self.inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise ArgumentError(
                "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule`. "
                "Call `forward` with a dummy batch to initialize the parameters."
            )
        return super().__getattr__(name)

    @property
    def shape(self) -> Shape:
        raise EvaluationError(
            "Can't access the shape of an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before accessing their attributes."
        )

    def materialize(self, values: Tensor) -> None:
        """Become a parameter with these values."""
        self.inner, self.form = values.inner, None
        self.__class__ = Parameter  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<UninitializedParameter>"


def filled(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor filled with one value; in the default dtype unless `dtype` is given."""
    return full(tuple(shape), value, dtype=dtype or arrays.default_dtype(), device=device)


def parameter(shape: Sequence[int], value: float = 0.0, *, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter filled with one value; see `filled`."""
    return Parameter(filled(shape, value, dtype=dtype, device=device))
