"""What primitives of one family have in common, so that an entry states only what is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
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


def in_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a namespace, in single precision where its arrays are: libraries make it double, and
    so do numbers beside them."""

    def forward(xp: Any, *operands: Any, **params: Any) -> Any:
        value = function(xp, *operands, **params)
        given = {arrays.dtype_name(o) for o in operands if type(o) not in arrays.PLAIN}
        return arrays.astype(value, "float32") if given == {"float32"} else value

    return forward
