"""NumPy's protocols for tensors: calls of NumPy functions are dispatched to functions of gradcli and recorded.

A function that gradcli lacks is computed by NumPy on the data, if no gradient is lost by that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import CallError, DifferentiationError
from gradcli.primitives import table
from gradcli.primitives.bind import Kind, constant, primal_and_tangents
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import resolve_keyword

# Functions whose results have no gradient; NumPy computes them on the data.
_WITHOUT_GRADIENT = frozenset(
    """
    allclose array_equal array_equiv array2string array_repr array_str can_cast iscomplex iscomplexobj isreal isrealobj
    may_share_memory min_scalar_type ndim result_type shape shares_memory size
    """.split()  # noqa: SIM905
)
_ATTRIBUTES = ("ndim", "shape", "size")
# Keywords, with the values for which they have no effect.
_NOTHING: Mapping[str, tuple[Any, ...]] = {
    "out": (None,),
    "dtype": (None,),
    "where": (None, True),
    "order": (None, "C", "K", "A"),
    "casting": ("same_kind",),
    "optimize": (True, False, "greedy", "optimal"),
}


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The implementation of `Tensor.__array_ufunc__`.

    Returns `ufunc(*inputs)`, or NotImplemented if an operand implements the protocol itself.

    Raises CallError for keywords that gradcli lacks, and DifferentiationError if gradcli lacks the function and a
    tensor requires grad.
    """
    if any(map(_is_of_others, inputs)):
        return NotImplemented
    name = ufunc.__name__
    if method != "__call__":
        return _of_numbers(f"{name}.{method}", getattr(ufunc, method), inputs, keywords)
    found = _of_ufunc(name)
    if found is None:
        return _of_numbers(name, ufunc, inputs, keywords)
    return found(*inputs, **_possible(name, keywords)) if keywords else found(*inputs)


def call_function(
    function: Callable[..., Any], types: Iterable[type], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """The implementation of `Tensor.__array_function__`: `function(*arguments)`. See `call_ufunc`."""
    if not all(issubclass(kind, TensorBase) or arrays.backend_of(kind) is not None for kind in types):
        return NotImplemented
    name = function.__name__
    if name in _ATTRIBUTES and len(arguments) == 1 and not keywords:
        return getattr(arguments[0], name)
    found = _of_module(function.__module__, name)
    if found is None:
        return _of_numbers(name, function, arguments, keywords)
    placed, named = _placed(function, found, arguments)
    given = _possible(name, {**named, **keywords})
    for key in given:
        if key != "out" and not any(
            parameter.name == resolve_keyword(key, found.parameters) for parameter in found.parameters
        ):
            raise CallError(f"NumPy's {name} takes no {key!r} with tensors", hint=f"{found.name}({found.signature})")
    return found(*placed, **given)


@cache
def _of_ufunc(name: str) -> Operation | None:
    return table.find(name, "scipy.special", "numpy")


@cache
def _of_module(module: str, name: str) -> Operation | None:
    # Functions of the same names in other modules, such as `emath`, have other meanings.
    if module not in ("numpy", "numpy.linalg", "numpy.fft") or name in _WITHOUT_GRADIENT:
        return None
    return table.find(name, *table.dialects_of(module))


def _possible(name: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call that have an effect; `out` is unwrapped from the tuple that ufuncs pass.

    Raises CallError for unsupported ones.
    """
    given = {key: value for key, value in keywords.items() if not _says_nothing(key, value)}
    if type(given.get("out")) is tuple:
        (given["out"],) = given["out"]
    if "out" in given and not isinstance(given["out"], TensorBase):
        raise CallError(f"NumPy's {name} cannot put tensors into an array by 'out'", hint="give it a tensor as 'out'")
    if "where" in given:
        raise CallError(f"NumPy's {name} takes no 'where' with tensors", hint="gradcli.where chooses elements")
    return given


def _says_nothing(key: str, value: Any) -> bool:
    if value is None or isinstance(value, (str, bool)):
        return value in _NOTHING.get(key, ())
    return type(value).__name__ == "_NoValueType"


def _placed(
    function: Callable[..., Any], found: Operation, arguments: Sequence[Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Positional and keyword arguments for `found` from the positional arguments of a NumPy function.

    From the first position at which the parameters differ, they are passed by NumPy's names.
    """
    names, own = _names(function), found.parameters
    known = [parameter.name for parameter in own]
    for place, (name, _) in enumerate(zip(names, arguments)):
        meant = resolve_keyword(name, own)
        required = own[-1].variadic or (place < len(own) and own[place].default is None)
        if known[place : place + 1] != [meant] and (meant in known or not required):
            return arguments[:place], dict(zip(names[place:], arguments[place:]))
    return arguments, {}


@cache
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional parameters of a function, without variadic ones."""
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        names.append(parameter.name)
    return tuple(names)


def _of_numbers(name: str, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Call a NumPy function with the data of tensors. Raises DifferentiationError if a gradient would be lost."""

    def numbers(value: Any) -> Any:
        if isinstance(value, TensorBase):
            if name in _WITHOUT_GRADIENT:
                return value.made(constant(value.inner)).numpy()
            carried = value.dual or len(primal_and_tangents(value.inner)) > 1
            if carried or (value.requires_grad and grad_enabled.get()):
                raise DifferentiationError(
                    f"gradcli has no function {name!r}, and NumPy's would lose the gradient",
                    hint="detach() gives a tensor without one",
                )
            return value.detach().numpy()
        if isinstance(value, (list, tuple)):
            return type(value)(map(numbers, value))
        return value

    return function(*map(numbers, arguments), **{key: numbers(value) for key, value in keywords.items()})


def _is_of_others(value: Any) -> bool:
    """Return whether an operand is of a library that implements NumPy's protocols itself."""
    if isinstance(value, (Kind, float, int, list, tuple)) or arrays.is_array(value):
        return False
    return getattr(type(value), "__array_ufunc__", None) is not None
