"""The constants of a program: told apart by value, and as plain numbers where that is all they are."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.program.ir import Atom, Variable

# A constant that is computed from others takes at most this many elements of memory.
_MOST_FOLDED = 2**16

# Above this many bytes a constant is told by a digest of its bytes.
_SMALL = 64


def is_constant(atom: Atom) -> bool:
    return not isinstance(atom, Variable)


def may_be_folded(shape: Shape) -> bool:
    """Whether a constant of this shape is computed where the program is built, and not where it runs."""
    return math.prod(shape) <= _MOST_FOLDED


def key(constant: Any) -> Hashable:
    """Equal for constants of the same dtype, shape and bits: -0.0 is not 0.0, and nan is nan."""
    kind = type(constant)
    if kind is float:
        return (kind, struct.pack("d", constant) if constant == constant else "nan")
    if kind in arrays.PLAIN:
        return (kind, constant)
    shape, dtype = arrays.shape(constant), arrays.dtype_name(constant)
    number = uniform(constant)
    if number is not None:
        return (dtype, shape, number.tobytes())
    data = arrays.to_numpy(constant).tobytes()
    return (dtype, shape, data if len(data) <= _SMALL else _digest(data))


def _digest(data: bytes) -> bytes:
    # Not imported above: most programs have no such constant.
    import hashlib

    return hashlib.blake2b(data).digest()


def keeps_signs(constant: Any) -> bool:
    """Whether its negative has the other sign everywhere: a whole number that is 0 has no other."""
    return arrays.is_floating(constant) or arrays.every(constant != 0)


def uniform(constant: Any) -> Any:
    """The one element, of zero dimensions, that a constant has everywhere; None where they differ.

    Where it has no elements at all, 1 is as good as any.
    """
    if type(constant) in arrays.PLAIN:
        return constant
    if not constant.size:
        return constant.dtype.type(1)
    if not constant.ndim:
        return constant
    first = constant[(0,) * constant.ndim]
    if any(constant.strides) and constant.tobytes() != first.tobytes() * constant.size:
        return None
    return first


def number(atom: Atom) -> float | None:
    """The number that a constant is everywhere; None for a variable, and where there are several."""
    if isinstance(atom, Variable):
        return None
    if type(atom) in arrays.PLAIN:
        return float(atom)
    element = uniform(atom)
    return None if element is None else float(element)


def is_number(atom: Atom, value: float) -> bool:
    """Whether an atom is this number everywhere, with this sign of zero."""
    found = number(atom)
    if found is None:
        return False
    return found == value and math.copysign(1.0, found) == math.copysign(1.0, value)


def filled(value: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A constant that has `value`, a number or 0-d array, everywhere, without the memory for it."""
    value = arrays.astype(value, dtype)
    return arrays.tidy(arrays.numpy_namespace().broadcast_to(value, shape)) if shape else arrays.tidy(value)
