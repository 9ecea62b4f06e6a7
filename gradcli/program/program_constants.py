"""Inspects the constants of a program: keys by value, uniform arrays, and comparison with numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.program.ir import Atom, Variable

# Bound on the number of elements of a constant that constant folding computes.
_MOST_FOLDED = 2**16

# Size in bytes above which the key of a constant has a digest instead of its bytes.
_SMALL = 64


def is_constant(atom: Atom) -> bool:
    return not isinstance(atom, Variable)


def may_be_folded(shape: Shape) -> bool:
    """Return whether a constant of this shape is computed when the program is built instead of when it runs."""
    return math.prod(shape) <= _MOST_FOLDED


def key(constant: Any) -> Hashable:
    """A key that is equal for constants of the same dtype, shape and bits: -0.0 differs from 0.0, and nan equals
    nan."""
    kind = type(constant)
    if kind is float:
        return (kind, struct.pack("d", constant) if constant == constant else "nan")
    if kind is complex:
        return (kind, key(constant.real), key(constant.imag))
    if kind in arrays.PYTHON_NUMBERS:
        return (kind, constant)
    if arrays.backend_of(kind) == "flint":
        # Balls of equal numbers need not enclose the same number. A program keeps its constants alive.
        return (kind, id(constant))
    shape, dtype = arrays.shape(constant), arrays.dtype_name(constant)
    number = uniform(constant)
    if number is not None:
        return (dtype, shape, number.tobytes())
    data = arrays.to_numpy(constant).tobytes()
    return (dtype, shape, data if len(data) <= _SMALL else _digest(data))


def _digest(data: bytes) -> bytes:
    # Imported on demand: most programs have no such constant.
    import hashlib

    return hashlib.blake2b(data).digest()


def keeps_signs(constant: Any) -> bool:
    """Return whether negation changes the sign of every element. An integer 0 has no sign."""
    return arrays.is_inexact(constant) or arrays.all_true(constant != 0)


def uniform(constant: Any) -> Any:
    """Return the element that a constant has everywhere, with zero dimensions; None where elements differ.

    A constant without elements has the element 1.
    """
    if type(constant) in arrays.PYTHON_NUMBERS:
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
    """Return the real number that a constant has everywhere; None for a variable, complex numbers, where elements
    differ, and for a ball that is not known to be a float."""
    if isinstance(atom, Variable) or arrays.is_complex(atom):
        return None
    if type(atom) in arrays.PYTHON_NUMBERS:
        return float(atom)
    if arrays.backend_of(type(atom)) == "flint":
        exactly = arrays.to_numpy(atom)
        return float(exactly) if exactly.dtype == "float64" and not exactly.ndim else None
    element = uniform(atom)
    return None if element is None else float(element)


def is_number(atom: Atom, value: float) -> bool:
    """Return whether an atom is this number everywhere, including the sign of zero."""
    found = number(atom)
    if found is None:
        return False
    return found == value and math.copysign(1.0, found) == math.copysign(1.0, value)


def filled(value: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return a constant with `value`, a number or 0-d array, everywhere, without allocating memory for each element."""
    value = arrays.astype(value, dtype)
    return arrays.tidy(arrays.numpy_namespace().broadcast_to(value, shape)) if shape else arrays.tidy(value)
