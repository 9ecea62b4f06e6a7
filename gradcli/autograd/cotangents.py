"""The two conventions of cotangents of complex numbers.

For a real L and z = a + i*b, users get and give dL/da + i*dL/db, as in PyTorch: the direction in which L grows. Within a
pass cotangents are dL/da - i*dL/db, as in JAX, for which the chain rule of holomorphic functions has no conjugates. Each
is the conjugate of the other; those of real numbers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.primitives.entries.complex_parts import conjugate_of


def conjugated(cotangent: Any) -> Any:
    """A cotangent in the other convention; None for None."""
    return None if cotangent is None else conjugate_of(cotangent)


def all_conjugated(cotangents: Sequence[Any]) -> list[Any]:
    return [conjugated(c) for c in cotangents]
