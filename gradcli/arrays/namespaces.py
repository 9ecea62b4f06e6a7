"""Which library an array is of, found without importing one, and the namespace that computes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from gradcli.errors import EvaluationError
from gradcli.timing import phase

PLAIN = frozenset({float, bool, int})

# The classes of arrays, by the package that they are in and their name.
_CLASSES = {
    ("numpy", "ndarray"): "numpy",
    ("numpy", "generic"): "numpy",
    ("torch", "Tensor"): "torch",
    ("cupy", "ndarray"): "cupy",
    ("jax", "Array"): "jax",
    ("jaxlib", "ArrayImpl"): "jax",
    ("jax", "Tracer"): "jax",
}
STANDARD = "standard"


def _backend_of(kind: type) -> str | None:
    """The library whose arrays have this type; "standard" for one that is known only to follow the
    Python array API, None for what is no array."""
    for base in kind.__mro__:
        found = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return STANDARD if hasattr(kind, "__array_namespace__") else None


backend_of: Callable[[type], str | None] = cache(_backend_of)


@cache
@phase("import")
def numpy_namespace() -> Any:
    from gradcli.arrays import numpy_arrays

    return numpy_arrays


def namespace_of(operands: Iterable[Any]) -> Any:
    """The namespace of NumPy, unless an array of another library is among the operands.

    Raises EvaluationError where there are arrays of two other libraries.
    """
    return foreign_namespace(operands) or numpy_namespace()


def foreign_namespace(operands: Iterable[Any]) -> Any:
    """The namespace of the operands that are neither numbers nor arrays of NumPy; None where all are."""
    foreign = None
    for operand in operands:
        kind = type(operand)
        if kind in PLAIN:
            continue
        name = backend_of(kind)
        if name is None or name == "numpy":
            continue
        if foreign is None:
            foreign = name, operand
        elif foreign[0] != name:
            raise EvaluationError(
                f"arrays of {foreign[0]} and of {name} meet in one operation", hint="convert one of them first"
            )
    return None if foreign is None else _namespace(*foreign)


def _namespace(name: str, array: Any) -> Any:
    if name == STANDARD:
        from gradcli.arrays import standard

        return standard.namespace_of(array)
    from gradcli.arrays import backends

    return backends.home(name).namespace_of(array)


_default: ContextVar[Any] = ContextVar("gradcli_namespace", default=None)


def default_namespace() -> Any:
    """The namespace of arrays that a program makes from numbers."""
    return _default.get() or numpy_namespace()


def chosen_namespace() -> Any:
    """The default namespace; None for that of NumPy."""
    return _default.get()


def placed(array: Any) -> Any:
    """A number or an array as one of the default namespace; what is there already stays as it is."""
    namespace = _default.get()
    if namespace is None:
        return array
    try:
        with phase("transfer"):
            return namespace.asarray(array)
    except (MemoryError, RuntimeError) as error:
        raise namespace.explained(error) or error from None


@contextmanager
def using_namespace(namespace: Any) -> Iterator[None]:
    """Within the block, new arrays are of `namespace`; of NumPy where that is None."""
    token = _default.set(namespace)
    try:
        yield
    finally:
        _default.reset(token)
