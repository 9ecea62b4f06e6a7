"""Constructors of primitives of a family, which set the fields that its members have in common."""

from __future__ import annotations

from collections.abc import Callable

from gradcli import arrays
from gradcli.primitives import batching
from gradcli.primitives.jet_rules import from_derivative, linear
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any


def elementwise(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A primitive that acts on each element of broadcast operands independently."""
    fields.setdefault("jet", from_derivative)
    return Primitive(name, signature, doc, elementwise=True, batch=batching.elementwise, **fields)


def predicate(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """An elementwise primitive with boolean results and no derivative."""
    return elementwise(
        name, signature, doc, keeps_integers=True, truths=True, rounds_alike=True, vjp=None, derivative="none", **fields
    )


def permuting(name: str, signature: str, doc: str, **fields: Any) -> Primitive:
    """A primitive that moves elements to positions determined by its parameters alone."""
    return Primitive(name, signature, doc, moves=True, truths=True, jet=linear, **fields)


def complex_by_scipy(name: str) -> Callable[..., Any]:
    """The implementation of a primitive for complex operands by SciPy, for its field `of_complex`."""

    def of_complex(xp: Any, *operands: Any) -> Any:
        # Imported here, because only programs with complex numbers need it.
        from gradcli.arrays.scipy_complex import by_scipy

        return by_scipy(xp, name, *operands)

    return of_complex


def complex_definition(name: str) -> Callable[..., Any]:
    """The implementation of a primitive for complex operands by a definition, for its field `of_complex`."""

    def of_complex(xp: Any, *operands: Any) -> Any:
        # Imported here, because only programs with complex numbers need it.
        from gradcli.arrays.definitions import complex_definitions

        return getattr(complex_definitions, name)(xp, *operands)

    return of_complex


def keeping_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with float32 results for float32 arrays; libraries return double precision there, also if numbers are
    passed beside arrays."""

    def forward(xp: Any, *operands: Any, **params: Any) -> Any:
        value = function(xp, *operands, **params)
        given = {arrays.dtype_name(o) for o in operands if type(o) not in arrays.PYTHON_NUMBERS}
        return arrays.astype(value, "float32") if given == {"float32"} else value

    return forward
