"""Parsing of signatures and arguments: keywords of other libraries, lists as arrays, and the parameters that a rule
reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from gradcli import arrays
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import CONTAINER_RANK, Kind, Params, bind, readings
from gradcli.type_hints import Any

# inspect.CO_VARARGS; importing inspect would slow the start.
_HAS_VARARGS = 0x04
# The types of nested sequences, which are accepted as tensors.
SEQUENCES = frozenset({list, tuple})
# Parameters that take a list of tensors, or one with None in it, as it is.
_TAKING_LISTS = frozenset({"tensors", "output_size", "lu_and_piv", "spacing"})
# Parameters whose lists are passed on unchanged.
_LIST_PARAMETERS = frozenset(
    {"axis", "axes", "shape", "repeats", "shift", "indices", "place", "source", "destination"}
) | (_TAKING_LISTS - {"tensors"})
# The own parameters that a keyword of another library may stand for; the first one that the function has is used.
_KEYWORD_ALIASES = {
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
# Keywords of NumPy that are ignored if they are None and the function has no such parameter.
_IGNORED_IF_NONE = frozenset({"dtype", "out"})
# Names of the first and second tensor parameter in other libraries, own names of a first one, and own parameters that
# may precede it.
_FIRST_TENSOR_KEYWORDS = frozenset({"input", "a", "x", "A", "x1", "arr", "array", "ary", "m", "mat1"})
_SECOND_TENSOR_KEYWORDS = frozenset({"other", "b", "B", "x2", "exponent", "vec", "vec2", "mat2", "tensor", "values"})
_FIRST_TENSOR_PARAMETERS = frozenset({"x", "a", "A", "x1", "y", "input"})
_LEADING_PARAMETERS = frozenset({"condition", "n"})


class SignatureParameter(NamedTuple):
    """A parameter of a function of the language; `default` is its source text, None if it is required."""

    name: str
    default: str | None
    variadic: bool
    keyword_only: bool = False

    @property
    def takes_list(self) -> bool:
        """True if it takes a list of tensors, or one with None in it, as it is."""
        return self.name in _TAKING_LISTS and not self.variadic


@cache
def parse_signature(signature: str) -> tuple[SignatureParameter, ...]:
    """The parameters of a signature such as `x, axis=None, keepdims=False` or `*tensors`."""
    return tuple(_parameters(signature))


def _parameters(signature: str) -> Iterator[SignatureParameter]:
    for part in filter(None, signature.replace(" ", "").split(",")):
        name, _, default = part.partition("=")
        yield SignatureParameter(name.lstrip("*"), default or None, name.startswith("*"))


@cache
def names_and_required(parameters: tuple[SignatureParameter, ...]) -> tuple[frozenset[str], int]:
    """The names of the parameters, and how many of them are required."""
    return frozenset([p.name for p in parameters]), sum([p.default is None and not p.variadic for p in parameters])


def resolve_keyword(keyword: str, parameters: Sequence[SignatureParameter]) -> str:
    """The parameter that a keyword stands for; the keyword itself if there is none."""
    known = [p.name for p in parameters]
    if keyword in known:
        return keyword
    if keyword in _FIRST_TENSOR_KEYWORDS or keyword in _SECOND_TENSOR_KEYWORDS:
        tensors = [
            p.name for p in parameters if p.default is None and not p.variadic and p.name not in _LEADING_PARAMETERS
        ]
        place = 0 if keyword in _FIRST_TENSOR_KEYWORDS else 1
        if place < len(tensors) and tensors[0] in _FIRST_TENSOR_PARAMETERS:
            return tensors[place]
    return next((name for name in _KEYWORD_ALIASES.get(keyword, ()) if name in known), keyword)


def resolve_keywords(keywords: Mapping[str, Any], parameters: Sequence[SignatureParameter]) -> dict[str, Any]:
    """The keywords of a call renamed to the function's own parameters, without those that are ignored."""
    named = {resolve_keyword(keyword, parameters): value for keyword, value in keywords.items()}
    known = {p.name for p in parameters}
    return {
        name: value
        for name, value in named.items()
        if value is not None or name in known or name not in _IGNORED_IF_NONE
    }


def lists_to_arrays(parameters: Sequence[SignatureParameter], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Positional arguments, with lists of numbers for operands converted to arrays."""
    read = [*operands]
    for place, value in enumerate(operands):
        if type(value) in SEQUENCES:
            read[place] = _read_list(value, _parameter_at(parameters, place))
    return tuple(read)


def _parameter_at(parameters: Sequence[SignatureParameter], place: int) -> SignatureParameter:
    """The parameter of the argument at a position: a variadic one, or the last one, covers all further arguments."""
    for parameter in parameters[:place]:
        if parameter.variadic:
            return parameter
    return parameters[min(place, len(parameters) - 1)]


def _read_list(value: Any, parameter: SignatureParameter) -> Any:
    """A list of numbers for an operand, or a tuple that contains tensors, converted to an array."""
    if parameter.name in _LIST_PARAMETERS:
        return value
    if parameter.name == "tensors" and not parameter.variadic:
        return [_as_array(item) if type(item) in SEQUENCES else item for item in value]
    return _as_array(value) if type(value) is list or _tensor_in(value) is not None else value


def _as_array(numbers: Sequence[Any]) -> Any:
    """A list as an array, floats in the default dtype; stacked into a tensor if it contains tensors."""
    kind = _tensor_in(numbers)
    if kind is not None:
        return kind.stacked([_as_array(item) if type(item) in SEQUENCES else item for item in numbers])
    found = arrays.asarray(numbers)
    return arrays.astype(found, arrays.default_dtype()) if arrays.is_floating(found) else found


def _read_lists(primitive: Any, operands: Sequence[Any], params: Params) -> Any:
    """Interpret an operation on nested lists: they become arrays, or tensors if they contain any."""
    return bind(primitive, [_as_array(o) if type(o) in SEQUENCES else o for o in operands], params)


readings.update(dict.fromkeys(SEQUENCES, (CONTAINER_RANK, _read_lists)))


def _tensor_in(items: Sequence[Any]) -> Kind | None:
    """A tensor of any kind in nested lists, None if they contain numbers only."""
    if set(map(type, items)) <= arrays.PYTHON_NUMBERS:
        return None
    inside = (_tensor_in(item) if type(item) in SEQUENCES else item for item in items)
    return next((item for item in inside if isinstance(item, Kind)), None)


def parameters_read(rule: Any, first: int) -> frozenset[int]:
    """The positions among (y, *operands) that a rule reads: its parameters from index `first` on whose names do not
    start with an underscore.

    `*operands` counts as one position. A missing rule reads nothing.
    """
    code = getattr(rule, "__code__", None)
    if code is None:
        return frozenset()
    names = code.co_varnames[first : code.co_argcount]
    if code.co_flags & _HAS_VARARGS:
        names += (code.co_varnames[code.co_argcount + code.co_kwonlyargcount],)
    return frozenset(i for i, name in enumerate(names) if not name.startswith("_"))
