"""Forward mode by dual numbers, with the names and behaviour of `torch.autograd.forward_ad`."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from gradcli import arrays
from gradcli.autograd.dual import (
    Dual,
    Level,
    check_size,
    current_level,
    forward_enabled,
    primal_alias,
    with_layout_of,
    with_tangent,
)
from gradcli.autograd.modes import ModeSwitch
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, DtypeError, expect
from gradcli.named_tuples import NamedTuple

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def enter_dual_level() -> int:
    """Begin a level, in which tensors can have tangents. Raises DifferentiationError inside another level."""
    if current_level.get() is not None:
        raise DifferentiationError("Nested forward mode AD is not supported at the moment")
    current_level.set(Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; all of its tangents are dropped."""
    current = current_level.get()
    if level not in (None, 0) or current is None:
        raise DifferentiationError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    current_level.set(None)
    current.end()


class dual_level(ContextDecorator):
    """A level as a context manager, `with dual_level():`, or as a decorator."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor that shares memory and graph with `tensor`, with the given tangent.

    The tangent is `tangent` itself, or a copy if its memory layout differs.

    Results computed from it carry their derivative along the tangent. Raises DifferentiationError outside of a level,
    for a tangent of another shape, or if either argument is already a dual; DtypeError for integers.
    """
    if level not in (None, 0) or current_level.get() is None:
        raise DifferentiationError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for given, what in ((tensor, "primal"), (tangent, "tangent")):
        expect(given, Tensor, f"the {what} of a dual is a Tensor")
        if not arrays.is_inexact(given.inner):
            raise DtypeError(f"Expected {what} to be floating point or complex, but got: {given.dtype}")
    if isinstance(tensor, Dual):
        raise DifferentiationError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if isinstance(tangent, Dual):
        raise DifferentiationError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    check_size(tangent, tensor)
    return with_tangent(primal_alias(tensor), with_layout_of(tangent, tensor))


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent; None if it has none."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal of a dual, sharing its memory and graph, and its tangent itself.

    Raises CallError if it is not a tensor.
    """
    expect(tensor, Tensor, "unpack_dual(): argument 'dual' (position 1) must be Tensor")
    if level not in (None, 0) or current_level.get() is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(primal_alias(tensor), tensor.tangent if isinstance(tensor, Dual) else None)


class _set_fwd_grad_enabled(ModeSwitch):
    """Turn the tangents of operations on duals on or off from the call on.

    As a context manager, the mode is restored at the end of the block.
    """

    variable = forward_enabled


def _is_fwd_grad_enabled() -> bool:
    """Return whether operations on duals produce tangents."""
    return forward_enabled.get()


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return -1 if current_level.get() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
