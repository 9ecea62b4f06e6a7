"""Bitwise functions of integers and truth values, as PyTorch has them. They have no derivative."""

from __future__ import annotations

from gradcli import arrays
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import EvaluationError
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.comparisons import logical_and, logical_not, logical_or, not_equal
from gradcli.primitives.operators import operand
from gradcli.type_hints import Any

_OF_TRUTHS = {"and": logical_and, "or": logical_or, "xor": not_equal, "invert": logical_not}


def bitwise_and(x: Any, other: Any) -> Any:
    """The bits that are set in both; of truth values, whether both are true."""
    return _applied("and", x, other)


def bitwise_or(x: Any, other: Any) -> Any:
    """The bits that are set in one or both; of truth values, whether one or both are true."""
    return _applied("or", x, other)


def bitwise_xor(x: Any, other: Any) -> Any:
    """The bits that are set in one of the two; of truth values, whether they differ."""
    return _applied("xor", x, other)


def bitwise_not(x: Any) -> Any:
    """The bits that are not set; of truth values, whether each is false."""
    return _applied("invert", x)


def bitwise_left_shift(x: Any, other: Any) -> Any:
    """The bits moved to the left by `other` places. Raises EvaluationError for truth values."""
    return _applied("left_shift", x, other)


def bitwise_right_shift(x: Any, other: Any) -> Any:
    """The bits moved to the right by `other` places. Raises EvaluationError for truth values."""
    return _applied("right_shift", x, other)


def _applied(name: str, *operands: Any) -> Any:
    """Raises EvaluationError for floats."""
    given = [operand(o) for o in operands]
    dtypes = {arrays.dtype_name(o) for o in given}
    if dtypes == {"bool"} and name in _OF_TRUTHS:
        return _OF_TRUTHS[name](*given)
    numbers = [o.inner if isinstance(o, TensorBase) else o for o in given]
    if any("int" not in dtype and dtype != "bool" for dtype in dtypes) or dtypes == {"bool"}:
        raise EvaluationError(
            "&, |, ^ and ~ are for tensors of truth values or integers, << and >> for integers",
            hint="x.bool() is where x is not 0",
        )
    if any(isinstance(n, Kind) for n in numbers):
        raise EvaluationError("bitwise functions of integers are for tensors whose numbers are known")
    namespace: Any = arrays.namespace_of(numbers)
    found = namespace.tidy(getattr(namespace, f"bitwise_{name}")(*namespace.promoted(numbers, truths=True)))
    tensor = next((o for o in given if isinstance(o, TensorBase)), None)
    return found if tensor is None else tensor.made(found)
