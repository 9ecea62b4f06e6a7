"""What a call accepts: the parameters of a signature, the keywords of other libraries, lists of numbers for arrays; and
which of its parameters a rule reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.primitives.bind import OUTSIDE, Kind, Params, bind, readings

# inspect.CO_VARARGS, without importing inspect.
_HAS_VARARGS = 0x04
# What may stand for a tensor.
SEQUENCES = frozenset({list, tuple})
# Parameters that take lists as they are.
_READ_LISTS = frozenset(
    {"axis", "axes", "shape", "repeats", "shift", "indices", "place", "source", "destination", "output_size"}
)
# The first of the names that a function has is meant.
_MEANINGS = {
    "arrays": ("tensors",),
    "tup": ("tensors",),
    "indices": ("tensors", "indices_or_sections"),
    "sections": ("indices_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
    "reps": ("repeats",),
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "axes": ("axis",),
    "keepdim": ("keepdims",),
    "ddof": ("correction",),
    "unbiased": ("correction",),
    "a_min": ("min",),
    "a_max": ("max",),
    "fill_value": ("value",),
    "steps": ("num",),
    "interpolation": ("method",),
    "shifts": ("shift",),
    "diagonal": ("k",),
    "offset": ("k",),
    "p": ("ord", "d"),
    "dim0": ("axis1",),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
}
# Keywords of NumPy's that say nothing where they are None, in functions that have none of the name.
_UNSAID = frozenset({"dtype", "out"})
# What libraries call the first tensor of a function and the second, and what a first one, and what is before it, are
# called here.
_FIRST = frozenset({"input", "a", "x", "A", "x1", "arr", "array", "ary", "m", "mat1"})
_SECOND = frozenset({"other", "b", "B", "x2", "exponent", "vec", "vec2", "mat2", "tensor"})
_OWN_FIRST = frozenset({"x", "a", "A", "x1", "y", "input"})
_BEFORE = frozenset({"condition", "n"})


class Parameter(NamedTuple):
    """A parameter of a function of the language; `default` is its text, None where it is required."""

    name: str
    default: str | None
    variadic: bool
    keyword_only: bool = False


@cache
def parse_signature(signature: str) -> tuple[Parameter, ...]:
    """The parameters of a signature such as `x, axis=None, keepdims=False` or `*tensors`."""
    return tuple(_parameters(signature))


def _parameters(signature: str) -> Iterator[Parameter]:
    for part in filter(None, signature.replace(" ", "").split(",")):
        name, _, default = part.partition("=")
        yield Parameter(name.lstrip("*"), default or None, name.startswith("*"))


def rename(keyword: str, parameters: Sequence[Parameter]) -> str:
    """The name of the parameter that a keyword means; the keyword itself, where there is none."""
    known = [p.name for p in parameters]
    if keyword in known:
        return keyword
    if keyword in _FIRST or keyword in _SECOND:
        tensors = [p.name for p in parameters if p.default is None and not p.variadic and p.name not in _BEFORE]
        place = 0 if keyword in _FIRST else 1
        if place < len(tensors) and tensors[0] in _OWN_FIRST:
            return tensors[place]
    return next((name for name in _MEANINGS.get(keyword, ()) if name in known), keyword)


def with_own_names(keywords: Mapping[str, Any], parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The keywords of a call under the names that they have here, without those that say nothing."""
    named = {rename(keyword, parameters): value for keyword, value in keywords.items()}
    known = {p.name for p in parameters}
    return {name: value for name, value in named.items() if value is not None or name in known or name not in _UNSAID}


def with_arrays(parameters: Sequence[Parameter], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Positional arguments, with arrays for the lists of numbers that stand for operands."""
    # One such as `*tensors`, or the last one, stands for all that follow.
    last = next((place for place, p in enumerate(parameters) if p.variadic), len(parameters) - 1)
    places = chain(parameters[:last], repeat(parameters[last]))
    return tuple(_read_list(o, p) for o, p in zip(operands, places))


def _read_list(value: Any, parameter: Parameter) -> Any:
    """An argument, where it is a list of numbers that stands for an operand, as an array; a tuple where it has tensors."""
    if type(value) not in SEQUENCES or parameter.name in _READ_LISTS:
        return value
    if parameter.name == "tensors" and not parameter.variadic:
        return [_as_array(item) if type(item) in SEQUENCES else item for item in value]
    return _as_array(value) if type(value) is list or _kind_within(value) is not None else value


def _as_array(numbers: Sequence[Any]) -> Any:
    """A list as an array, of the dtype in use unless its numbers are whole; one with tensors in it as those stacked."""
    kind = _kind_within(numbers)
    if kind is not None:
        return kind.stacked([_as_array(item) if type(item) in SEQUENCES else item for item in numbers])
    found = arrays.asarray(numbers)
    return arrays.astype(found, arrays.default_dtype()) if arrays.is_floating(found) else found


def _read_lists(primitive: Any, operands: Sequence[Any], params: Params) -> Any:
    """The reading of an operation on nested lists: one on arrays, or on the tensors that are in them."""
    return bind(primitive, [_as_array(o) if type(o) in SEQUENCES else o for o in operands], params)


readings.update(dict.fromkeys(SEQUENCES, (OUTSIDE, _read_lists)))


def _kind_within(items: Sequence[Any]) -> Kind | None:
    """One of the tensors of any kind in nested lists, None where there are numbers alone."""
    if set(map(type, items)) <= arrays.PLAIN:
        return None
    inside = (_kind_within(item) if type(item) in SEQUENCES else item for item in items)
    return next((item for item in inside if isinstance(item, Kind)), None)


def used_parameters(rule: Any, first: int) -> frozenset[int]:
    """Which of (y, *operands) a rule reads: the positions, from `first` on, of parameters without
    an underscore; `*operands` counts as one. Where there is no rule it reads nothing."""
    code = getattr(rule, "__code__", None)
    if code is None:
        return frozenset()
    names = code.co_varnames[first : code.co_argcount]
    if code.co_flags & _HAS_VARARGS:
        names += (code.co_varnames[code.co_argcount + code.co_kwonlyargcount],)
    return frozenset(i for i, name in enumerate(names) if not name.startswith("_"))
