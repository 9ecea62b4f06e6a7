"""The methods of tensors beside the functions of the table, as in PyTorch: sizes, parts, dtypes, devices, memory."""

from __future__ import annotations

import builtins
import math

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.dtype_names import Device, Dtype, canonical_dtype, known_dtype, named, type_of_tensors
from gradcli.autograd.tensor_base import TensorBase
from gradcli.autograd.views import Storage, place_of
from gradcli.errors import DifferentiationError, ShapeError, as_bool, expect
from gradcli.primitives import strides, table
from gradcli.primitives.axes import gathered, integer, normalize_axes, normalize_axis
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.conversions import broadcast_to, cast, reshape
from gradcli.primitives.entries.arithmetic import add, identity, zeros_like
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat, squeeze, tile
from gradcli.primitives.operation import Operation
from gradcli.type_hints import Any, Self

_OTHER = "the other one is a tensor"
_NO_VIEW = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


class TensorSurface(TensorBase):
    """A tensor with the methods that describe it, take parts of it, convert it and create similar tensors."""

    __slots__ = ()
    is_sparse = False

    @property
    def at(self) -> Any:
        """`x.at[key].set(values)` and similar methods, which return a tensor with some elements changed, as in JAX."""
        # Imported here, because few programs need it.
        from gradcli.autograd.operations.at_updates import At

        return At(self)

    # --- sizes and memory

    def dim(self) -> builtins.int:
        """The number of axes."""
        return len(self.shape)

    ndimension = dim

    def numel(self) -> builtins.int:
        """The number of elements."""
        return math.prod(self.shape)

    nelement = numel

    @property
    def size(self) -> arrays.ElementCount:
        """The number of elements; as a method, `x.size()` is the shape and `x.size(dim)` the size of one axis."""
        return arrays.ElementCount(self.shape)

    @property
    def dtype(self) -> Dtype:
        """The name of the dtype; it compares equal to the same dtype of NumPy."""
        return named(arrays.dtype_name(self.inner))

    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def element_size(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.itemsize

    @property
    def nbytes(self) -> builtins.int:
        """The size of all elements in bytes."""
        return self.numel() * self.itemsize

    def is_floating_point(self) -> builtins.bool:
        return arrays.is_floating(self.inner)

    def is_complex(self) -> builtins.bool:
        return arrays.is_complex(self.inner)

    def stride(self, dim: builtins.int | None = None) -> Any:
        """The strides in elements, of all axes or of one."""
        steps = self._layout()[1]
        return steps if dim is None else steps[normalize_axis(dim, len(steps))]

    def storage_offset(self) -> builtins.int:
        """The position of the first element in the storage."""
        places = self.in_memory()
        return 0 if places is None or not places.size else builtins.int(places.reshape(-1)[0])

    def is_contiguous(self) -> builtins.bool:
        """Return whether the elements are contiguous in memory, in row-major order."""
        sizes, steps = self._layout()
        wanted = strides.contiguous(sizes)[1]
        return not self.size or all(size == 1 or have == want for size, have, want in zip(sizes, steps, wanted))

    def contiguous(self, memory_format: Any = None) -> Any:
        """This tensor, or a copy if its elements are not contiguous."""
        return self if self.is_contiguous() else self.clone()

    def to_dense(self) -> Self:
        """This tensor: all tensors are dense."""
        return self

    def _layout(self) -> strides.Layout:
        return strides.contiguous(self.shape) if self.place is None else self.place.layout()

    # --- parts, and other shapes

    def select(self, dim: builtins.int, index: builtins.int) -> Any:
        """The slice at an index along an axis, as a view."""
        return self[axis_key(normalize_axis(dim, self.ndim), integer(index, "an index"))]

    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Any:
        """The slice from `start` with a length along an axis, as a view."""
        number = normalize_axis(dim, self.ndim)
        first, count = integer(start, "a start"), integer(length, "a length")
        first += self.shape[number] if first < 0 else 0
        if count < 0 or not 0 <= first <= self.shape[number] - count:
            raise ShapeError(
                f"start ({first}) + length ({count}) exceeds dimension size ({self.shape[number]})."
                if count >= 0
                else "narrow(): length must be non-negative."
            )
        return self[axis_key(number, slice(first, first + count))]

    def sort(self, *arguments: Any, **params: Any) -> Any:
        """The elements in ascending order along an axis (the last by default), and their indices.

        With NumPy's keyword `axis`, only the values are returned. `gradcli.sort` without an axis is NumPy's.
        """
        from gradcli.autograd.operations.tensor_functions import function

        return function("sort")(self, *(arguments if arguments or params else (-1,)), **params)

    def split(self, split_size: Any, dim: builtins.int = 0) -> Any:
        """Split along an axis into parts of a size, or of the sizes in a list, as views. `gradcli.split` is NumPy's."""
        return _of_torch("split")(self, split_size, dim)

    def split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> Any:
        """Split along an axis into parts of the given sizes, as views."""
        return _of_torch("split")(self, split_sizes, dim)

    def unsafe_split(self, split_size: Any, dim: builtins.int = 0) -> Any:
        """Like `split`, but the parts are copies, which may be changed in place."""
        return tuple(map(identity, self.split(split_size, dim)))

    def unsafe_split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> Any:
        """Like `split_with_sizes`, but the parts are copies, which may be changed in place."""
        return tuple(map(identity, self.split_with_sizes(split_sizes, dim)))

    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> Any:
        """Like `chunk`, but the parts are copies, which may be changed in place."""
        return tuple(map(identity, table.known("chunk")(self, chunks, dim)))

    def repeat(self, *repeats: Any) -> Any:
        """The tensor repeated along each axis. `gradcli.repeat` is NumPy's, which repeats each element."""
        return tile(self, *repeats)

    def view(self, *shape: Any) -> Any:
        """A view with another shape.

        Raises ShapeError if the memory layout does not allow it; `reshape` copies then.
        """
        made = reshape(self, *shape)
        if place_of(self).storage is not place_of(made).storage:
            raise ShapeError(_NO_VIEW)
        return made

    def view_as(self, other: TensorBase) -> Any:
        """A view with the shape of another tensor; see `view`."""
        expect(other, TensorBase, _OTHER)
        return self.view(arrays.shape(other))

    def reshape_as(self, other: TensorBase) -> Any:
        """The same elements in the shape of another tensor."""
        expect(other, TensorBase, _OTHER)
        return reshape(self, arrays.shape(other))

    def expand_as(self, other: TensorBase) -> Any:
        """The tensor broadcast to the shape of another tensor."""
        expect(other, TensorBase, _OTHER)
        return broadcast_to(self, arrays.shape(other))

    def storage(self) -> Storage:
        """The storage of this tensor."""
        return place_of(self).storage

    untyped_storage = storage

    def data_ptr(self) -> builtins.int:
        """A number that identifies the memory of the first element."""
        return self.storage().data_ptr() + self.storage_offset()

    def resize_(self, *sizes: Any) -> Self:
        """Change the shape in place: elements are kept in row-major order, truncated or padded with zeros.

        Raises DifferentiationError if the tensor requires grad or shares its data.
        """
        shape = gathered(sizes, "a size")
        if shape == self.shape:
            return self
        if self.requires_grad and not self.is_inference():
            raise DifferentiationError("cannot resize variables that require grad")
        if self.place is not None:
            raise DifferentiationError("cannot resize a tensor that shares its numbers with others")
        kept = index(reshape(self.inner, (math.prod(self.shape),)), (slice(math.prod(shape)),))
        behind = self._zeros((math.prod(shape) - arrays.size(kept),))
        self.inner, self.form = reshape(concat([kept, behind]), shape), None
        self._count_change()
        return self

    def resize_as_(self, other: TensorBase) -> Self:
        """Change the shape in place to that of another tensor; see `resize_`."""
        return self.resize_(arrays.shape(other))

    def squeeze_(self, dim: Any = None) -> Any:
        """Remove axes of size 1 in place, all or those in `dim`; axes of other sizes are kept."""
        axes = normalize_axes(dim, self.ndim)
        return self._see_otherwise(squeeze, tuple(axis for axis in axes if self.shape[axis] == 1))

    def _see_otherwise(self, operation: Operation, *arguments: Any, **params: Any) -> Any:
        # Imported here, because only programs that change tensors in place need it.
        from gradcli.autograd.views import change_view

        return change_view(self, operation, arguments, params)

    # --- others like it

    def new_zeros(self, *size: Any, **options: Any) -> Any:
        """Zeros of a shape with, by default, the dtype and device of this tensor."""
        size = (options.pop("size"),) if "size" in options else size
        return self._like_it(self._zeros(gathered(size, "a size") if size else ()), **options)

    new_empty = new_zeros

    def new_ones(self, *size: Any, **options: Any) -> Any:
        """Ones of a shape; see `new_zeros`."""
        size = (options.pop("size"),) if "size" in options else size
        return self.new_full(size[0] if len(size) == 1 else size, 1, **options)

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Any:
        """A tensor of a shape filled with one value; see `new_zeros`."""
        zeros = self._zeros(gathered((size,), "a size"))
        return self._like_it(self.made(zeros).fill_(fill_value).inner, **options)

    def new_tensor(self, data: Any, **options: Any) -> Any:
        """A copy of data as a tensor with the dtype and device of this tensor by default; see `new_zeros`."""
        array = arrays.asarray(data.inner if isinstance(data, TensorBase) else data)
        return self._like_it(arrays.like_library_of(arrays.astype(array, self.dtype), self.inner), **options)

    def new(self, *size: Any, **options: Any) -> Any:
        """PyTorch's old constructor: `new_tensor` for a list, else `new_zeros`."""
        return (
            self.new_tensor(*size, **options)
            if size and isinstance(size[0], list)
            else self.new_zeros(*size, **options)
        )

    def _like_it(
        self,
        array: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: Any = False,
        layout: Any = None,
        pin_memory: Any = False,
    ) -> Any:
        return self.made(array).to(dtype=dtype, device=device).requires_grad_(requires_grad)

    def _zeros(self, shape: Shape) -> Any:
        zeros = arrays.zeros(shape, self.dtype, arrays.foreign_namespace((self.inner,)))
        given = constant(self.inner)
        if not isinstance(given, Kind) or not given.by_row:
            return zeros
        # For a batched tensor the result is batched too, so that it can be changed in place by batched values.
        return cast(add(zeros, sum_(zeros_like(given))), self.dtype)

    # --- truth values and bits

    def __and__(self, other: Any) -> Any:
        return _of_bits("bitwise_and", self, other)

    def __or__(self, other: Any) -> Any:
        return _of_bits("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Any:
        return _of_bits("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return _of_bits("bitwise_not", self)

    def __lshift__(self, other: Any) -> Any:
        return _of_bits("bitwise_left_shift", self, other)

    def __rshift__(self, other: Any) -> Any:
        return _of_bits("bitwise_right_shift", self, other)

    # --- random numbers in place

    def copy_(self, source: Any) -> Any:
        """Copy the values of `source`, broadcast to this shape and converted to this dtype."""
        raise NotImplementedError

    def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Any:
        """Fill with normal numbers of a mean and a standard deviation."""
        return self.copy_(_draws().normal(self.shape, self._drawn_dtype, mean, std, generator))

    def uniform_(self, a: Any = 0.0, b: Any = 1.0, *, generator: Any = None) -> Any:
        """Fill with uniform numbers in [a, b)."""
        return self.copy_(_draws().uniform(self.shape, self._drawn_dtype, a, b, generator))

    def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Any:
        """Fill with exponential numbers of a rate."""
        return self.copy_(_draws().exponential(self.shape, self._drawn_dtype, lambd, generator))

    def random_(self, low: Any, high: Any = None, *, generator: Any = None) -> Any:
        """Fill with integers in [low, high); with one bound, in [0, low)."""
        first, last = (0, low) if high is None else (low, high)
        return self.copy_(_draws().integers(self.shape, first, last, generator))

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Any:
        """Fill with 1 with the probability `p`, a number or a tensor, and else 0."""
        points = self.made(_draws().uniform(self.shape, "float64", generator=generator))
        return self.copy_(points < p)

    @property
    def _drawn_dtype(self) -> str:
        return self.dtype if self.is_floating_point() else "float64"

    # --- conversions

    def to(
        self, *wanted: Any, dtype: Any = None, device: Any = None, copy: builtins.bool = False, **_ignored: Any
    ) -> Any:
        """This tensor converted to a dtype, a device, or those of another tensor; itself if nothing changes.

        A conversion between floating dtypes is an operation of the graph; one to integers is outside of it. Raises
        CallError for an unknown dtype, and DifferentiationError if a tensor that requires grad would be moved to
        another device.
        """
        for item in wanted:
            if isinstance(item, TensorBase):
                dtype, device = item.dtype, _device(item)
            elif canonical_dtype(item) is not None:
                dtype = item
            elif not isinstance(item, builtins.bool):
                device = item
        found = self._in_dtype(dtype)._on_device(device)
        return found.clone() if as_bool(copy, "copy") and found is self else found

    def astype(self, dtype: Any, copy: builtins.bool = True) -> Any:
        """Converted to a dtype, as by `to`; a copy unless `copy` is False."""
        return self.to(dtype=dtype, copy=copy)

    def _in_dtype(self, dtype: Any) -> Any:
        name = known_dtype(dtype)
        if name is None or name == self.dtype:
            return self
        recorded = name.startswith(("float", "complex")) and arrays.is_inexact(self.inner)
        return cast(self if recorded else self.detach(), name)

    def _on_device(self, device: Any) -> Any:
        if device is None or _same_device(str(device), _device(self)):
            return self
        moved = arrays.moved(self.inner, None, str(device))
        if self.requires_grad:
            raise DifferentiationError("a tensor that requires grad stays on its device", hint="use x.detach().to(…)")
        return self.made(moved)

    def type_as(self, other: TensorBase) -> Any:
        """Converted to the dtype of another tensor."""
        expect(other, TensorBase, _OTHER)
        return self._in_dtype(other.dtype)

    @property
    def device(self) -> Device:
        """The device, such as "cpu" or "cuda:0"."""
        return Device(_device(self))

    @property
    def is_cuda(self) -> builtins.bool:
        return _device(self).startswith("cuda")

    def cpu(self) -> Any:
        """Moved to the CPU."""
        return self._on_device("cpu")

    def cuda(self, device: Any = "cuda") -> Any:
        """Moved to a GPU."""
        return self._on_device(device if isinstance(device, str) else f"cuda:{device}")

    def double(self) -> Any:
        """Converted to float64, in the graph."""
        return self._in_dtype("float64")

    def long(self) -> Any:
        """Converted to int64, without a gradient."""
        return self._in_dtype("int64")

    def float(self) -> Any:
        """Converted to float32, in the graph."""
        return self._in_dtype("float32")

    def int(self) -> Any:
        """Converted to int32, without a gradient."""
        return self._in_dtype("int32")

    def half(self) -> Any:
        """Converted to float16, in the graph."""
        return self._in_dtype("float16")

    def short(self) -> Any:
        """Converted to int16, without a gradient."""
        return self._in_dtype("int16")

    def char(self) -> Any:
        """Converted to int8, without a gradient."""
        return self._in_dtype("int8")

    def byte(self) -> Any:
        """Converted to uint8, without a gradient."""
        return self._in_dtype("uint8")

    def bool(self) -> Any:
        """True for each element that is not 0."""
        return self._in_dtype("bool")

    def type(self, dtype: Any = None) -> Any:
        """Converted to a dtype or a tensor type of PyTorch; without an argument, the name of the tensor type."""
        return self._in_dtype(dtype) if dtype is not None else f"torch.{type_of_tensors(self.dtype)}"


def _draws() -> Any:
    # Imported here, because only programs that draw random numbers need it.
    from gradcli.autograd import generators

    return generators


def _of_torch(name: str) -> Any:
    return table.find(name, "torch")


def _device(tensor: TensorBase) -> str:
    namespace = arrays.foreign_namespace((tensor.inner,))
    return "cpu" if namespace is None else namespace.device_name


def _same_device(asked: str, here: str) -> bool:
    """Return whether the device name `asked`, which may lack its number, denotes the device `here`."""
    return asked == here or (":" not in asked and here.partition(":")[0] == asked)


def _of_bits(name: str, *operands: Any) -> Any:
    # Imported here, because few programs need it.
    from gradcli.autograd.operations import bitwise

    return getattr(bitwise, name)(*operands)
