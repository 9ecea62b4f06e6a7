"""The dtypes and shapes of results, and other facts about tensors that PyTorch's programs ask for."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Size, broadcast
from gradcli.autograd.creation.factory import new_leaf, tensor
from gradcli.autograd.dtype_names import Dtype, known_dtype, named
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ShapeError
from gradcli.primitives.axes import integer_array, whole_numbers
from gradcli.primitives.bind import concrete

# The kinds of numbers, in the order of promotion.
_BOOL, _INT, _FLOAT, _COMPLEX = range(4)
_KINDS = {"bool": _BOOL, "uint": _INT, "int": _INT, "float": _FLOAT, "complex": _COMPLEX}


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes have after broadcasting."""
    return Size(broadcast([whole_numbers(shape, "a size") for shape in shapes]))


def promote_types(type1: Any, type2: Any) -> Dtype:
    """The smallest dtype that holds the numbers of both; of a float or complex dtype and one of integers or truth values,
    the former."""
    names = [str(known_dtype(given)) for given in (type1, type2)]
    low, high = sorted(names, key=_kind)
    if _kind(low) <= _INT < _kind(high):
        return named(high)
    return named(str(arrays.numpy_namespace().promote_types(*names)))


def result_type(tensor1: Any, tensor2: Any) -> Dtype:
    """The dtype of the sum of two tensors or numbers. A number, or a tensor of no axes, counts only where its kind, of
    truth values, integers, floats or complex numbers, is above that of the other."""
    pair = [(x if isinstance(x, Tensor) else tensor(x), isinstance(x, Tensor)) for x in (tensor1, tensor2)]
    # Tensors with axes come before those without, and these before numbers.
    (first, _), (second, is_tensor) = sorted(pair, key=lambda part: (-bool(part[0].ndim), -part[1]))
    dtype, other, default = str(first.dtype), str(second.dtype), arrays.default_dtype()
    if bool(first.ndim) != bool(second.ndim) or not is_tensor:
        if _kind(other) <= _kind(dtype):
            return named(dtype)
        if _kind(dtype) == _FLOAT:
            return named(_complex_of(dtype))
        if not is_tensor and _kind(other) > _INT:
            return named(default if _kind(other) == _FLOAT else _complex_of(default))
    return promote_types(dtype, other)


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether a conversion keeps the kind of numbers: of truth values, integers, floats or complex numbers."""
    start, end = (str(known_dtype(given)) for given in (from_, to))
    return _kind(start) <= _kind(end)


def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element of a tensor is not 0. Raises ShapeError for another number of elements."""
    if input.numel() != 1:
        raise ShapeError(f"Boolean value of Tensor with {input.numel()} values is ambiguous")
    return bool((input != 0).all())


def scalar_tensor(s: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of no axes with one number, in the default dtype unless another is given."""
    return new_leaf(s, dtype=dtype or arrays.default_dtype(), **options)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The positions along each axis of a shape for indices into the flat tensor. Raises ShapeError for indices out of
    bounds."""
    sizes, places = whole_numbers(shape, "a size"), integer_array(concrete(indices), "an index")
    try:
        found = arrays.numpy_namespace().unravel_index(places, sizes)
    except ValueError:
        raise ShapeError(f"an index is out of bounds for a tensor of shape {list(sizes)}") from None
    return tuple(indices.made(arrays.asarray(part)) for part in found)


def gcd(input: Any, other: Any) -> Any:
    """The greatest common divisor of whole numbers."""
    return _of_integers("gcd", input, other)


def lcm(input: Any, other: Any) -> Any:
    """The least common multiple of whole numbers."""
    return _of_integers("lcm", input, other)


def _of_integers(name: str, *operands: Any) -> Any:
    numbers = [integer_array(concrete(x), "an operand") for x in operands]
    made = next(x for x in operands if isinstance(x, Tensor))
    dtype = promote_types(*(x.dtype if isinstance(x, Tensor) else made.dtype for x in operands))
    return made.made(getattr(arrays.numpy_namespace(), name)(*numbers).astype(str(dtype)))


def _complex_of(dtype: str) -> str:
    """The dtype of complex numbers whose parts have a floating-point dtype."""
    return "complex128" if dtype == "float64" else "complex64"


def _kind(dtype: str) -> int:
    return _KINDS[dtype.rstrip("0123456789")]
