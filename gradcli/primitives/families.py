"""What primitives of one family have in common, so that an entry states only what is its own."""

from __future__ import annotations

from typing import Any

from gradcli.primitives import batching
from gradcli.primitives.primitive import Primitive, not_implemented

NO_JET = not_implemented("truncated Taylor series are not available yet")


def elementwise(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A function of each element by itself, on broadcast operands."""
    return Primitive(name, signature, doc, elementwise=True, jet=NO_JET, batch=batching.elementwise, **fields)


def predicate(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """An elementwise function with truth values, which has no derivative."""
    return elementwise(name, signature, doc, truths=True, vjp=None, derivative="none", **fields)


def structural(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A function that combines or reduces whole axes; `batch` is its rule for one more axis."""
    return Primitive(name, signature, doc, jet=NO_JET, **fields)


def moving(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A function that moves elements, whatever they are."""
    return structural(name, signature, doc, truths=True, **fields)
