"""Choose the namespace that computes with given arrays, and the default namespace of new arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from gradcli.arrays import backends
from gradcli.arrays.backends import STANDARD, backend_of
from gradcli.errors import EvaluationError
from gradcli.timing import phase
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.arrays.protocol import Namespace


@cache
@phase("import")
def numpy_namespace() -> Any:
    """The namespace of NumPy; NumPy is imported at the first call."""
    from gradcli.arrays import numpy_arrays

    checked: Namespace = numpy_arrays
    return checked


def namespace_of(operands: Iterable[Any]) -> Namespace:
    """The namespace of NumPy, unless an array of another library is among the operands.

    Raises EvaluationError if arrays of two libraries other than NumPy are mixed.
    """
    return foreign_namespace(operands) or numpy_namespace()


def foreign_namespace(operands: Iterable[Any]) -> Namespace | None:
    """The namespace of the operands that are neither numbers nor NumPy arrays; None if there are none."""
    foreign = None
    for operand in operands:
        name = backend_of(type(operand))
        if name is None or name == "numpy":
            continue
        if foreign is None:
            foreign = name, operand
        elif foreign[0] != name:
            raise EvaluationError(
                f"arrays of {foreign[0]} and of {name} meet in one operation", hint="convert one of them first"
            )
    return None if foreign is None else _namespace(*foreign)


def runner_of(primitive: Any, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """NumPy's `runner` of a primitive if the operands are arrays of float64, possibly beside Python numbers; else None."""
    found = [operand for operand in operands if type(operand) is not float and type(operand) is not int]
    numpy = numpy_namespace() if found and all(backend_of(type(operand)) == "numpy" for operand in found) else None
    return numpy.runner(primitive) if numpy is not None and numpy.are_float64(found) else None


def _namespace(name: str, array: Any) -> Namespace:
    if name == STANDARD:
        from gradcli.arrays import standard

        return standard.namespace_of(array)
    found: Namespace = backends.backend_module(name).namespace_of(array)
    return found


_default: ContextVar[Namespace | None] = ContextVar("gradcli_namespace", default=None)


# The default namespace, or None for that of NumPy.
chosen_namespace = _default.get


def chosen_scalars() -> Any:
    """What makes the numbers that are written in a program, None where these are floats."""
    namespace = chosen_namespace()
    return None if namespace is None else namespace.scalars


def default_namespace() -> Namespace:
    """The namespace of arrays that a program makes from numbers."""
    return chosen_namespace() or numpy_namespace()


def in_default_namespace(array: Any) -> Any:
    """`array` converted to the default namespace; unchanged if it is there already."""
    namespace = chosen_namespace()
    if namespace is None:
        return array
    with phase("transfer"), translating_errors(namespace):
        return namespace.asarray(array)


@contextmanager
def translating_errors(namespace: Namespace) -> Iterator[None]:
    """Within it, errors of a library are converted to errors of gradcli.

    Work on a device is asynchronous: a lack of memory may be reported only when a result is read.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        raise namespace.explained(error) or error from None


@contextmanager
def using_namespace(namespace: Namespace | None) -> Iterator[None]:
    """Within the block, new arrays belong to `namespace`; to NumPy if it is None."""
    token = _default.set(namespace)
    try:
        yield
    finally:
        _default.reset(token)
