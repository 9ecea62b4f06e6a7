"""Forward mode by dual numbers, with the names and behaviour of `torch.autograd.forward_ad`."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.autograd.dual import (
    Dual,
    Level,
    check_size,
    current_level,
    forward_enabled,
    laid_out_as,
    shared,
    with_tangent,
)
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, DtypeError, expect, flag

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def enter_dual_level() -> int:
    """Begin a level, in which tensors can have tangents. Raises DifferentiationError within another one."""
    if current_level.get() is not None:
        raise DifferentiationError("Nested forward mode AD is not supported at the moment")
    current_level.set(Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level, at which all tangents are forgotten."""
    current = current_level.get()
    if level not in (None, 0) or current is None:
        raise DifferentiationError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    current_level.set(None)
    current.end()


class dual_level(ContextDecorator):
    """A level as a block, `with dual_level():`, or as a decorator of a function that is one."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor in the memory of `tensor`, and in its graph, with a tangent of its shape: `tangent` itself, or a copy
    where its elements lie in another order.

    What is computed from it has the derivative along the tangent for its own. Raises DifferentiationError outside of a
    level, for a tangent of another shape, and where either is a dual already; DtypeError for integers.
    """
    if level not in (None, 0) or current_level.get() is None:
        raise DifferentiationError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for given, what in ((tensor, "primal"), (tangent, "tangent")):
        expect(given, Tensor, f"the {what} of a dual is a Tensor")
        if not arrays.is_floating(given.inner):
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
    return with_tangent(shared(tensor), laid_out_as(tangent, tensor))


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """What a dual is made of: its numbers, in the same memory and graph, and its tangent itself.

    Raises CallError for what is no tensor.
    """
    expect(tensor, Tensor, "unpack_dual(): argument 'dual' (position 1) must be Tensor")
    if level not in (None, 0) or current_level.get() is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(shared(tensor), tensor.tangent if isinstance(tensor, Dual) else None)


class _set_fwd_grad_enabled:
    """Has operations on duals give tangents, or not, from here on; as a block until its end."""

    def __init__(self, mode: bool) -> None:
        self._before = forward_enabled.get()
        forward_enabled.set(flag(mode, "the mode"))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        forward_enabled.set(self._before)


def _is_fwd_grad_enabled() -> bool:
    """Whether operations on duals give tangents."""
    return forward_enabled.get()


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return -1 if current_level.get() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
