"""Python's built-in functions of numbers and lists, such as `range`, `zip` and `len`, in the language."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.lists import ProgramList, item_of, sliced
from gradcli.language.interpreter.statements import iterated_list, loop_values
from gradcli.language.interpreter.values import Value, as_bool, as_tensor_or_number, length_of
from gradcli.language.syntax import tree
from gradcli.primitives.axes import integer, one_number
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import trunc
from gradcli.primitives.signature import parse_signature


def _range(node: tree.Call, *bounds: Value) -> range:
    if not 1 <= len(bounds) <= 3:
        raise CallError("'range' takes 1 to 3 numbers", hint="range(n), range(a, b), range(a, b, step)", span=node.span)
    # Bounds beyond 2**53 are exact.
    numbers = [
        b if type(b) is int else integer(as_tensor_or_number(b, "'range'"), "a bound of 'range'") for b in bounds
    ]
    if numbers[2:] == [0]:
        raise EvaluationError("the step of 'range' must not be 0", span=node.span)
    return range(*numbers)


def _zip(node: tree.Call, *given: Value) -> ProgramList:
    rows = zip(*(loop_values(g, node.span) for g in given))
    found = ProgramList((ProgramList(row, node.span, "tuple") for row in rows), node.span, "generated")
    found.beside = given
    return found


def _enumerate(node: tree.Call, items: Value, start: Value = 0.0) -> ProgramList:
    first = integer(start, "the start of 'enumerate'")
    rows = ([float(i), item] for i, item in enumerate(loop_values(items, node.span), first))
    found = ProgramList((ProgramList(row, node.span, "tuple") for row in rows), node.span, "generated")
    found.beside = range(first, first + len(found.items)), items
    return found


def _reversed(node: tree.Call, items: Value) -> ProgramList:
    return ProgramList(reversed(iterated_list(items, node.span)), node.span, "generated")


def _list(node: tree.Call, items: Value = ()) -> ProgramList:
    return ProgramList(iterated_list(items, node.span), node.span, "generated")


def _len(node: tree.Call, value: Value) -> float:
    if isinstance(value, ProgramList):
        return float(value.count)
    if isinstance(value, range):
        return float(length_of(value))
    if isinstance(value, (tuple, str)):
        return float(len(value))
    shape = arrays.shape(as_tensor_or_number(value, "'len'"))
    if not shape:
        raise EvaluationError("a number has no 'len'", span=node.span)
    return float(shape[0])


def _float(node: tree.Call, value: Value) -> Value:
    if isinstance(value, str):
        try:
            plain = float(value)
        except ValueError:
            raise EvaluationError(f"{value!r} is not a number", span=node.span) from None
        namespace = arrays.chosen_namespace()
        if namespace is None or namespace.scalars is None or not any(c in "0123456789" for c in value):
            return plain
        return namespace.scalars.number(value)
    _check_no_gradient(node, value)
    return _real(node, as_tensor_or_number(value, "'float'"))


def _real(node: tree.Call, value: Value) -> Value:
    """A value. Raises EvaluationError for a complex one, of which libraries would drop the imaginary part."""
    if arrays.is_complex(value):
        raise EvaluationError(
            f"'{node.name}' takes real numbers, and not complex ones",
            hint="real(z) is the real part, abs(z) the modulus",
            span=node.span,
        )
    return value


def _check_no_gradient(node: tree.Call, value: Value) -> None:
    """Raise EvaluationError where the call would drop a gradient silently."""
    tensor = as_tensor_or_number(value, f"'{node.name}'")
    if isinstance(tensor, Tensor) and tensor.requires_grad:
        raise EvaluationError(
            f"'{node.name}' cuts a value off from its gradient in Python",
            hint="leave it out to keep the gradient, or write detach(x)",
            span=node.span,
        )


def _int(node: tree.Call, value: Value) -> float | int:
    if type(value) is int:
        return value
    # `int` is a step function, whose derivative is 0, so that no gradient is lost.
    numbers = _real(node, concrete(as_tensor_or_number(value, "'int'")))
    if arrays.shape(numbers):
        hint = "trunc(x) leaves the fractions of a tensor's elements out"
        raise EvaluationError("'int' needs a number", hint=hint, span=node.span)
    plain = one_number(numbers, "'int'")
    if not math.isfinite(plain):
        raise EvaluationError(f"'int' needs a whole number, and this is {float(plain)}", span=node.span)
    return float(integer(trunc(plain), "'int'"))


def _sorted(node: tree.Call, items: Value, reverse: Value = False) -> ProgramList:
    found = iterated_list(items, node.span)
    limits.charge_steps(_SORT_COST * len(found))
    keys = [concrete(as_tensor_or_number(i, "'sorted'")) for i in found]
    if any(arrays.shape(k) for k in keys):
        raise EvaluationError("'sorted' needs numbers", hint="sort(x) sorts a tensor along an axis", span=node.span)
    order = sorted(range(len(found)), key=[*map(arrays.on_host, keys)].__getitem__, reverse=as_bool(reverse, node))
    return ProgramList([found[i] for i in order], node.span, "generated")


# Cost of sorting one item, in eighths of a step.
_SORT_COST = 4


def _floats(node: tree.Call, x: Value) -> Value:
    """`x.float()`: converts booleans to numbers and returns other tensors unchanged."""
    found = _real(node, as_tensor_or_number(x, "a method"))
    return cast(found, arrays.default_dtype()) if arrays.dtype_name(found) == "bool" else found


def _as_type(node: tree.Call, x: Value, dtype: Value, copy: Value = True) -> Value:
    """`x.astype(float)`. Raises EvaluationError for a dtype other than that of the program."""
    of_complex = arrays.complex_dtype(arrays.default_dtype())
    wanted = {"float": "float64", "double": "float64", "complex": of_complex}.get(str(dtype), dtype)
    if wanted == of_complex:
        return cast(as_tensor_or_number(x, "a method"), wanted)
    if wanted != arrays.default_dtype():
        raise EvaluationError(
            f"the numbers of a program are of {arrays.default_dtype()}",
            hint="--dtype says which; floor(x) and trunc(x) make whole ones",
            span=node.span,
        )
    return _floats(node, x)


# Each with its signature.
_METHODS_OF_TENSORS: Mapping[str, tuple[str, Callable[..., Value]]] = {
    "float": ("x", _floats),
    "double": ("x", _floats),
    "astype": ("x, dtype, copy=True", _as_type),
}
_FUNCTIONS: Mapping[str, tuple[str, Callable[..., Value]]] = {
    "range": ("*bounds", _range),
    "zip": ("*items", _zip),
    "enumerate": ("items, start=0", _enumerate),
    "reversed": ("items", _reversed),
    "list": ("items=[]", _list),
    "tuple": ("items=()", _list),
    "len": ("items", _len),
    "float": ("x", _float),
    "int": ("x", _int),
    "sorted": ("items, reverse=False", _sorted),
}


def find(call: tree.Call) -> Callable[..., Value] | None:
    """The Python function that a call refers to, or None."""
    known = _FUNCTIONS if call.receiver is None and not call.module else {}
    found = (_METHODS_OF_TENSORS if call.receiver is not None else known).get(call.name)
    return None if found is None else functools.partial(_called, call, *found)


def _called(call: tree.Call, signature: str, function: Callable[..., Value], *given: Value, **named: Value) -> Value:
    call_arguments.fit(call.name, parse_signature(signature), given, named)
    return function(call, *given, **named)


def _append(_node: tree.Call, own: ProgramList, item: Value) -> None:
    own.append(item)


def _extend(node: tree.Call, own: ProgramList, items: Value) -> None:
    own.extend(iterated_list(items, node.span))


def _pop(_node: tree.Call, own: ProgramList, index: Value = -1.0) -> Value:
    if not own.items:
        raise EvaluationError("an empty list has nothing to pop")
    item, place = item_of(own, as_tensor_or_number(index, "'pop'")), integer(index, "an index")
    # The items after it move by one.
    limits.charge((-place - 1 if place < 0 else len(own.items) - place) // _MOVES_PER_ELEMENT)
    del own.items[place]
    own.changed()
    return item


def _copy(_node: tree.Call, own: ProgramList) -> ProgramList:
    return sliced(own, slice(None))


# Moving this many items of a list costs as much as computing one array element.
_MOVES_PER_ELEMENT = 16
# Methods of lists, each with its signature.
_METHODS: Mapping[str, tuple[str, Callable[..., Value]]] = {
    "append": ("item", _append),
    "extend": ("items", _extend),
    "pop": ("index=-1", _pop),
    "copy": ("", _copy),
}


def method(call: tree.Call, items: ProgramList, given: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Call a method of a list. Raises CallError for arguments that it does not take."""
    signature, function = _METHODS[call.name]
    call_arguments.fit(call.name, parse_signature(signature), given, named)
    return function(call, items, *given, **named)
