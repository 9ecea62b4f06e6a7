"""Python's operators on operands of every kind; each binds the primitive that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gradcli import arrays
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.conversions import permute
from gradcli.primitives.entries import arithmetic, comparisons, powers
from gradcli.primitives.entries.complex_parts import conjugate_of, imaginary_part, real_part_of
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul, prepared_matmul
from gradcli.primitives.entries.shape import matrix_transpose, stack
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

_NO_PARAMS: Mapping[str, Any] = {}
_AS_THEY_ARE = Kind, float, int


def _operator(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """The operator for which `primitive` stands; operands of one kind need no dispatch by `bind`."""

    def operator(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is type(self) or kind is float or kind is int:
            return self.read(primitive, (self, other), _NO_PARAMS)
        return bind(primitive, (self, operand(other)), _NO_PARAMS)

    return operator


def _reflected(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """The operator for which `primitive` stands, with the operands in the other order."""

    def operator(self: Any, other: Any) -> Any:
        return bind(primitive, (operand(other), self), _NO_PARAMS)

    return operator


class Operators(Kind):
    """A kind with operators, which accept numbers, arrays, nested lists and other kinds as the other operand."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def T(self) -> Any:
        return self.read(permute, (self,), {"axes": _reversed(len(self.shape))})

    @property
    def mT(self) -> Any:
        return matrix_transpose(self)

    @property
    def real(self) -> Any:
        return real_part_of(self)

    @property
    def imag(self) -> Any:
        return imaginary_part(self) if arrays.is_complex(self) else arithmetic.zeros_like(self)

    @property
    def H(self) -> Any:
        return conjugate_of(self.T)

    @property
    def mH(self) -> Any:
        return conjugate_of(self.mT)

    @staticmethod
    def stacked(items: Sequence[Any]) -> Any:
        return stack(items)

    __hash__ = object.__hash__
    # Makes NumPy return NotImplemented for `array + kind`, so that Python calls the reflected method of the kind.
    __array_ufunc__: Any = None

    __add__ = _operator(arithmetic.add)
    __radd__ = _reflected(arithmetic.add)
    __sub__ = _operator(arithmetic.subtract)
    __rsub__ = _reflected(arithmetic.subtract)
    __mul__ = _operator(arithmetic.multiply)
    __rmul__ = _reflected(arithmetic.multiply)
    __truediv__ = _operator(arithmetic.divide)
    __rtruediv__ = _reflected(arithmetic.divide)

    def __floordiv__(self, other: Any) -> Any:
        return arithmetic.floor_divide(self, operand(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return arithmetic.floor_divide(operand(other), self)

    def __mod__(self, other: Any) -> Any:
        return arithmetic.remainder(self, operand(other))

    def __rmod__(self, other: Any) -> Any:
        return arithmetic.remainder(operand(other), self)

    def __pow__(self, other: Any) -> Any:
        return powers.raised(self, operand(other))

    def __rpow__(self, other: Any) -> Any:
        return powers.raised(operand(other), self)

    def __matmul__(self, other: Any) -> Any:
        if type(other) is type(self):
            return self.read(matmul, *prepared_matmul(self, other))
        return matmul(self, operand(other))

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(operand(other), self)

    def __neg__(self) -> Any:
        return bind(arithmetic.negative, (self,), _NO_PARAMS)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return arithmetic.absolute(self)

    def __lt__(self, other: Any) -> Any:
        return comparisons.less(self, operand(other))

    def __le__(self, other: Any) -> Any:
        return comparisons.less_equal(self, operand(other))

    def __gt__(self, other: Any) -> Any:
        return comparisons.greater(self, operand(other))

    def __ge__(self, other: Any) -> Any:
        return comparisons.greater_equal(self, operand(other))

    def __eq__(self, other: object) -> Any:
        return comparisons.equal(self, operand(other)) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return comparisons.not_equal(self, operand(other)) if _is_operand(other) else NotImplemented

    def __getitem__(self, key: Any) -> Any:
        return index(self, key)


@cache
def _reversed(rank: int) -> tuple[int, ...]:
    return tuple(range(rank - 1, -1, -1))


def _is_operand(value: object) -> bool:
    return isinstance(value, (Kind, list, tuple)) or arrays.is_array(value)


def operand(value: Any) -> Any:
    """An operand of an operator: kinds, numbers and arrays as they are, nested lists as arrays."""
    if isinstance(value, _AS_THEY_ARE) or arrays.is_array(value):
        return value
    return arrays.asarray(value)
