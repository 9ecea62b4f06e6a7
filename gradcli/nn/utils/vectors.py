"""Converts the parameters of a network to one vector and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ShapeError, expect
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.shape import concat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """The elements of parameters concatenated to one vector, differentiable."""
    return concat([reshape(parameter, (-1,)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy consecutive elements of a vector to parameters. Raises ShapeError if it is too short."""
    expect(vec, Tensor, "expected the vector as a Tensor")
    place = 0
    for parameter in parameters:
        part = vec[place : place + parameter.numel()]
        if part.numel() < parameter.numel():
            raise ShapeError(f"a vector of {vec.numel()} elements is too short for the parameters")
        parameter.data = reshape(part, parameter.shape).detach()
        place += parameter.numel()
