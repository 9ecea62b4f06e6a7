"""What primitives of one family have in common, so that an entry states only what is its own."""

from __future__ import annotations

from typing import Any

from gradcli.primitives import batching
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.series import from_derivative, linear


def elementwise(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A function of each element by itself, on broadcast operands."""
    fields.setdefault("jet", from_derivative)
    return Primitive(name, signature, doc, elementwise=True, batch=batching.elementwise, **fields)


def predicate(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """An elementwise function with truth values, which has no derivative."""
    return elementwise(
        name, signature, doc, keeps_integers=True, truths=True, rounds_alike=True, vjp=None, derivative="none", **fields
    )


def moving(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A function that moves elements, whatever they are, to places that its parameters say."""
    return Primitive(name, signature, doc, moves=True, truths=True, jet=linear, **fields)
