"""Discrete Fourier transforms, of complex numbers and of real ones.

The matrix of the transform is symmetric, so that it is its own transpose. The transform of real numbers has half of the
frequencies, as the others are their conjugates; its transpose is its inverse, with each of these pairs counted once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import integer, normalize_axis, option, whole_numbers
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import divide, multiply
from gradcli.primitives.entries.elementwise.complex_numbers import conj
from gradcli.primitives.entries.indexing import axis_key, index, scatter
from gradcli.primitives.entries.shape import roll
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import NodeName, Primitive

SUBJECT = "Fourier transforms"

_VECTOR, _MATRIX = [1.0, 2.5, -3.0, 0.5], [[1.0, 2.0, 3.0], [4.0, -5.5, 6.0]]

# The norm of the transform in the opposite direction that has the same factor: with "forward" the transform is divided
# by the number of elements, with "backward" its inverse, with "ortho" each by the root of it.
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _cost(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    axes = params["axis"]
    lengths = [shapes[0][a] for a in (axes if isinstance(axes, tuple) else (axes,))]
    # A transform of n elements takes about as long as log2(n)/2 sums of n.
    return math.prod(shapes[0]) * (1 + sum(n.bit_length() for n in lengths) // 2)


def _cost_of_half(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    return max(2 * math.prod(shapes[0]), _cost(shapes, params))


def _forward(xp: Any, x: Any, *, axis: Shape, inverse: bool, norm: str) -> Any:
    transform = xp.fft.ifft if inverse else xp.fft.fft
    for a in axis:
        x = transform(x, axis=a, norm=norm)
    return x


_OF_COMPLEX, _OF_REAL = NodeName("FftC2CBackward0"), NodeName("FftR2CBackward0")


def _fourier_name(operands: Sequence[Any], _params: Mapping[str, Any]) -> NodeName:
    return _OF_COMPLEX if arrays.is_complex(operands[0]) else _OF_REAL


fourier: Primitive = Primitive(
    "fourier", "x, axis, inverse, norm", "the discrete Fourier transform over axes",
    internal="fft", numbers="analytic",
    forward=_forward,
    vjp=(lambda g, _y, _x, **params: bind(fourier, (g,), params),),
    jet=linear,
    batch=batching.along_axis,
    elements=_cost,
    derivative="fft(g)",
    node_name=_fourier_name,
)  # fmt: skip


def _single_frequencies(size: int, count: int, axis: int, rank: int, weight: float) -> Any:
    """A factor for each of `count` frequencies of real numbers: 1 for those without a partner, `weight` for others."""
    factors = arrays.numpy_namespace().full(count, weight)
    factors[0] = 1.0
    if size % 2 == 0:
        factors[size // 2] = 1.0
    return factors.reshape(count, *(1,) * (rank - axis - 1))


def _real_rule(g: Any, _y: Any, _x: Any, *, axis: int, norm: str) -> Any:
    size = _x.shape[axis]
    weights = _single_frequencies(size, size // 2 + 1, axis, len(_x.shape), 0.5)
    halved = multiply(conj(g), _in_dtype(weights, g))
    return bind(half_inverse, (halved,), {"size": size, "axis": axis, "norm": _OPPOSITE[norm]})


def _half_inverse_rule(g: Any, _y: Any, _x: Any, *, size: int, axis: int, norm: str) -> Any:
    weights = _single_frequencies(size, size // 2 + 1, axis, len(_x.shape), 2.0)
    return multiply(conj(bind(half, (g,), {"axis": axis, "norm": _OPPOSITE[norm]})), _in_dtype(weights, g))


def _in_dtype(factors: Any, x: Any) -> Any:
    """Real factors in the precision of `x`."""
    return factors.astype(arrays.real_dtype(arrays.dtype_name(x)))


half: Primitive = Primitive(
    "half_fourier", "x, axis, norm", "the discrete Fourier transform of real numbers, without the negative frequencies",
    internal="rfft", numbers="real",
    forward=lambda xp, x, *, axis, norm: xp.fft.rfft(x, axis=axis, norm=norm),
    vjp=(_real_rule,),
    jet=linear,
    batch=batching.along_axis,
    elements=_cost,
    derivative="irfft of conj(g), its pairs of frequencies halved",
    node_name="FftR2CBackward0",
)  # fmt: skip

half_inverse: Primitive = Primitive(
    "inverse_half_fourier", "x, size, axis, norm", "the real numbers of which `half_fourier` is the transform",
    internal="irfft", numbers="complex",
    forward=lambda xp, x, *, size, axis, norm: xp.fft.irfft(x, n=size, axis=axis, norm=norm),
    vjp=(_half_inverse_rule,),
    jet=linear,
    batch=batching.along_axis,
    elements=_cost_of_half,
    derivative="conj(rfft(g)), its pairs of frequencies doubled",
    node_name="FftC2RBackward0",
)  # fmt: skip


# --- the arguments of NumPy, PyTorch, JAX and SciPy


def _norm(norm: Any) -> str:
    return "backward" if norm is None else option(norm, _OPPOSITE, "norm")


def _resized(x: Any, size: int, axis: int) -> Any:
    """`x` cut, or filled with zeros, to a size along an axis."""
    sizes = arrays.shape(x)
    if sizes[axis] == size:
        return x
    if sizes[axis] > size:
        return index(x, axis_key(axis, slice(0, size)))
    return scatter(x, axis_key(axis, slice(0, sizes[axis])), (*sizes[:axis], size, *sizes[axis + 1 :]))


def _axis(x: Any, axis: Any, name: str) -> int:
    if not arrays.shape(x):
        raise ShapeError(f"'{name}' needs a vector or a tensor of more dimensions, and this is a number")
    return normalize_axis(axis, len(arrays.shape(x)))


def _size(n: Any, default: int, name: str) -> int:
    size = default if n is None else integer(n, "a number of points")
    if size < 1:
        raise ShapeError(f"'{name}' needs at least one point, not {size}")
    return size


def _one(x: Any, n: Any, axis: Any, norm: str, name: str, inverse: bool) -> Any:
    number = _axis(x, axis, name)
    size = _size(n, arrays.shape(x)[number], name)
    params = {"axis": (number,), "inverse": inverse, "norm": norm}
    return bind(fourier, (_resized(x, size, number),), params)


def _real_one(x: Any, n: Any, axis: Any, norm: str, name: str) -> Any:
    number = _axis(x, axis, name)
    size = _size(n, arrays.shape(x)[number], name)
    return bind(half, (_resized(x, size, number),), {"axis": number, "norm": norm})


def _real_of_one(x: Any, n: Any, axis: Any, norm: str, name: str) -> Any:
    number = _axis(x, axis, name)
    size = _size(n, 2 * (arrays.shape(x)[number] - 1), name)
    limits.charge(size)
    return bind(half_inverse, (_resized(x, size // 2 + 1, number),), {"size": size, "axis": number, "norm": norm})


def _axes(x: Any, s: Any, axes: Any, name: str) -> tuple[Shape, list[int | None]]:
    """The axes of a transform over several, and the size for each; None where it stays."""
    rank = len(arrays.shape(x))
    sizes: list[int | None] | None = None
    if s is not None:
        sizes = [None if n == -1 else n for n in whole_numbers(s, "a number of points")]
    if axes is None:
        numbers = tuple(range(rank)) if sizes is None else tuple(range(-len(sizes), 0))
    else:
        numbers = whole_numbers(axes, "an axis")
    found = tuple(normalize_axis(a, rank) for a in numbers)
    if sizes is not None and len(sizes) != len(found):
        raise ShapeError(f"'{name}' has {len(sizes)} sizes for {len(found)} axes")
    return found, [None] * len(found) if sizes is None else sizes


def _several(x: Any, s: Any, axes: Any, norm: str, name: str, inverse: bool) -> Any:
    numbers, sizes = _axes(x, s, axes, name)
    for axis, size in zip(numbers, sizes):
        x = _resized(x, _size(size, arrays.shape(x)[axis], name), axis)
    return bind(fourier, (x,), {"axis": numbers, "inverse": inverse, "norm": norm})


def _last_axis(numbers: Shape, name: str) -> int:
    if not numbers:
        raise ShapeError(f"'{name}' needs at least one axis")
    return numbers[-1]


def _real_several(x: Any, s: Any, axes: Any, norm: str, name: str) -> Any:
    numbers, sizes = _axes(x, s, axes, name)
    last = _real_one(x, sizes[-1] if sizes else None, _last_axis(numbers, name), norm, name)
    return _several(last, [-1 if n is None else n for n in sizes[:-1]], numbers[:-1], norm, name, False)


def _real_of_several(x: Any, s: Any, axes: Any, norm: str, name: str) -> Any:
    numbers, sizes = _axes(x, s, axes, name)
    last = _last_axis(numbers, name)
    others = _several(x, [-1 if n is None else n for n in sizes[:-1]], numbers[:-1], norm, name, True)
    return _real_of_one(others, sizes[-1], last, norm, name)


def _along(
    name: str, doc: str, definition: Any, *, derivative: str, example: str, edges: Sequence[str] = ()
) -> Composite:
    """A transform along an axis."""
    return Composite(
        name, "x, n=None, axis=-1, norm=None", doc,
        lambda x, n=None, axis=-1, norm=None: definition(x, n, axis, _norm(norm), name),
        derivative=derivative, edges=edges, example=example,
    )  # fmt: skip


def _over(name: str, doc: str, definition: Any, *, derivative: str, example: str, last: int = 0) -> Composite:
    """A transform over several axes: where they are not named, the `last` ones, or all."""

    def over(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return definition(x, s, tuple(range(-last, 0)) if axes is None and last else axes, _norm(norm), name)

    return Composite(
        name, "x, s=None, axes=None, norm=None", doc, over,
        derivative=derivative, example=example,
    )  # fmt: skip


def _hermitian(x: Any, n: Any, axis: Any, norm: str, name: str) -> Any:
    return _real_of_one(conj(x), n, axis, _OPPOSITE[norm], name)


def _of_hermitian(x: Any, n: Any, axis: Any, norm: str, name: str) -> Any:
    return conj(_real_one(x, n, axis, _OPPOSITE[norm], name))


def _hermitian_several(x: Any, s: Any, axes: Any, norm: str, name: str) -> Any:
    return _real_of_several(conj(x), s, axes, _OPPOSITE[norm], name)


def _of_hermitian_several(x: Any, s: Any, axes: Any, norm: str, name: str) -> Any:
    return conj(_real_several(x, s, axes, _OPPOSITE[norm], name))


_PULSE, _SPECTRUM = "x='[1, 2, 0.5, -1]'", "x='[6, 2, 1]'"
_IMAGE, _SPECTRA = "x='[[1, 2, 0.5], [1.5, -1, 2.25]]'", "x='[[6, 2, 1], [1, 0.5, 2]]'"

fft = _along(
    "fft",
    "the discrete Fourier transform along an axis, of n elements, cut or filled with 0; "
    "norm='forward' divides by their number, 'ortho' by its root, and 'backward', the default, leaves that to ifft",
    lambda x, n, axis, norm, name: _one(x, n, axis, norm, name, False),
    derivative="fft(g)", example=f"'abs(fft(x)[1])**2' {_PULSE}",
)  # fmt: skip
ifft = _along(
    "ifft", "the inverse of fft", lambda x, n, axis, norm, name: _one(x, n, axis, norm, name, True),
    derivative="ifft(g)", example=f"'abs(ifft(x)[1])**2' {_PULSE}",
)  # fmt: skip
rfft = _along(
    "rfft", "fft of real numbers, without the negative frequencies, whose values are the conjugates of the others",
    _real_one,
    derivative="the real part of fft(g), g filled with 0", example=f"'sum(abs(rfft(x))**2)' {_PULSE}",
)  # fmt: skip
irfft = _along(
    "irfft", "the inverse of rfft, n real numbers", _real_of_one,
    derivative="conj(rfft(g)) by n, its pairs of frequencies doubled",
    edges=(
        "without n, the number of elements is taken as even",
        "the imaginary part of the first frequency is ignored, and of an even number of elements that of the last",
    ),
    example=f"'sum(irfft(x)**3)' {_SPECTRUM}",
)  # fmt: skip
hfft = _along(
    "hfft", "the transform, n real numbers, of a signal whose second half has the conjugates of the first, which x is",
    _hermitian,
    derivative="rfft(g), its pairs doubled", example=f"'sum(hfft(x)**3)' {_SPECTRUM}",
)  # fmt: skip
ihfft = _along(
    "ihfft", "the inverse of hfft", _of_hermitian,
    derivative="that of conj(rfft(x)) by n", example=f"'sum(abs(ihfft(x))**2)' {_PULSE}",
)  # fmt: skip


fft2 = _over(
    "fft2", "fftn over the last two axes", lambda x, s, axes, norm, name: _several(x, s, axes, norm, name, False),
    last=2, derivative="fft2(g)", example=f"'sum(abs(fft2(x))**2)' {_IMAGE}",
)  # fmt: skip
ifft2 = _over(
    "ifft2", "the inverse of fft2", lambda x, s, axes, norm, name: _several(x, s, axes, norm, name, True),
    last=2, derivative="ifft2(g)", example=f"'sum(abs(ifft2(x))**2)' {_IMAGE}",
)  # fmt: skip
rfft2 = _over(
    "rfft2", "rfftn over the last two axes", _real_several,
    last=2, derivative="that of fft2 and rfft", example=f"'sum(abs(rfft2(x))**2)' {_IMAGE}",
)  # fmt: skip
irfft2 = _over(
    "irfft2", "the inverse of rfft2, with the numbers of elements in s", _real_of_several,
    last=2, derivative="that of ifft2 and irfft", example=f"'sum(irfft2(x)**3)' {_SPECTRA}",
)  # fmt: skip
hfft2 = _over(
    "hfft2", "hfftn over the last two axes", _hermitian_several,
    last=2, derivative="that of fft2 and hfft", example=f"'sum(hfft2(x)**3)' {_SPECTRA}",
)  # fmt: skip
ihfft2 = _over(
    "ihfft2", "the inverse of hfft2", _of_hermitian_several,
    last=2, derivative="that of ifft2 and ihfft", example=f"'sum(abs(ihfft2(x))**2)' {_IMAGE}",
)  # fmt: skip
fftn = _over(
    "fftn", "fft over several axes, by default all; s is the number of elements along each",
    lambda x, s, axes, norm, name: _several(x, s, axes, norm, name, False),
    derivative="fftn(g)", example=f"'sum(abs(fftn(x))**2)' {_IMAGE}",
)  # fmt: skip
ifftn = _over(
    "ifftn", "the inverse of fftn", lambda x, s, axes, norm, name: _several(x, s, axes, norm, name, True),
    derivative="ifftn(g)", example=f"'sum(abs(ifftn(x))**2)' {_IMAGE}",
)  # fmt: skip
rfftn = _over(
    "rfftn", "rfft along the last of several axes, and fft over the others", _real_several,
    derivative="that of fftn and rfft", example=f"'sum(abs(rfftn(x))**2)' {_IMAGE}",
)  # fmt: skip
irfftn = _over(
    "irfftn", "the inverse of rfftn, with the numbers of elements in s", _real_of_several,
    derivative="that of ifftn and irfft", example=f"'sum(irfftn(x)**3)' {_SPECTRA}",
)  # fmt: skip
hfftn = _over(
    "hfftn", "hfft along the last of several axes, after fft over the others", _hermitian_several,
    derivative="that of fftn and hfft", example=f"'sum(hfftn(x)**3)' {_SPECTRA}",
)  # fmt: skip
ihfftn = _over(
    "ihfftn", "the inverse of hfftn", _of_hermitian_several,
    derivative="that of ifftn and ihfft", example=f"'sum(abs(ihfftn(x))**2)' {_IMAGE}",
)  # fmt: skip


# --- frequencies


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    sizes = arrays.shape(x)
    numbers = tuple(range(len(sizes))) if axes is None else whole_numbers(axes, "an axis")
    numbers = tuple(normalize_axis(a, len(sizes)) for a in numbers)
    return roll(x, tuple(sign * (sizes[a] // 2) for a in numbers), numbers) if numbers else x


fftshift = Composite(
    "fftshift", "x, axes=None", "a spectrum with the frequency 0 moved to the middle of the axes, by default of all",
    lambda x, axes=None: _shifted(x, axes, 1),
    derivative="ifftshift(g)",
    samples=((_VECTOR,), (_MATRIX, 1)),
)  # fmt: skip
ifftshift = Composite(
    "ifftshift", "x, axes=None", "the inverse of fftshift", lambda x, axes=None: _shifted(x, axes, -1),
    derivative="fftshift(g)",
    samples=((_VECTOR,), (_MATRIX, 1)),
)  # fmt: skip


def _frequencies(size: int, d: Any, first: int, end: int) -> Any:
    """The whole numbers from `first` to before `end`, negative ones last, as frequencies of `size` samples."""
    limits.charge(size)
    numbers = arrays.made(lambda xp: xp.arange(first, end, 1, dtype=arrays.default_dtype()))
    return divide(roll(numbers, first) if first else numbers, multiply(float(size), d))


def _fftfreq(n: Any, d: Any = 1.0) -> Any:
    size = _size(n, 1, "fftfreq")
    return _frequencies(size, d, -(size // 2), (size + 1) // 2)


fftfreq = Composite(
    "fftfreq", "n, d=1.0", "the frequencies of fft of n samples at a distance d, the negative ones behind the others",
    _fftfreq,
    derivative="-sum(g*fftfreq(n, d))/d by d",
    example="'sum(fftfreq(4, d)**2)' d=0.5",
    samples=((4, 0.5), (5, 0.1)),
)  # fmt: skip


def _rfftfreq(n: Any, d: Any = 1.0) -> Any:
    size = _size(n, 1, "rfftfreq")
    return _frequencies(size, d, 0, size // 2 + 1)


rfftfreq = Composite(
    "rfftfreq", "n, d=1.0", "the frequencies of rfft of n samples at a distance d", _rfftfreq,
    derivative="-sum(g*rfftfreq(n, d))/d by d",
    example="'sum(rfftfreq(4, d)**2)' d=0.5",
    samples=((4, 0.5), (5, 0.1)),
)  # fmt: skip
