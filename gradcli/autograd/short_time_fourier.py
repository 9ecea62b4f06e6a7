"""Fourier transforms of windows of a signal, and the windows, with PyTorch's arguments."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.creation.factory import new_leaf
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError, ShapeError, expect
from gradcli.primitives.axes import integer
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.elementwise.complex_numbers import view_as_real
from gradcli.primitives.entries.indexing import scatter
from gradcli.primitives.entries.manipulation.creation import read_shape
from gradcli.primitives.entries.reductions import min_
from gradcli.primitives.entries.sampled_data.fourier import fft, ifft, irfft, rfft
from gradcli.primitives.entries.sampled_data.sampling import padded, unfold
from gradcli.primitives.entries.shape import swapaxes

# The signal is lost where the sum of squared windows is below this limit, which is PyTorch's.
_LEAST_ENVELOPE = 1e-11
# The norm of the transforms, by whether they are `normalized`.
_NORMS = {False: "backward", True: "ortho"}
_NO_PARAMETER = (
    "stft requires the return_complex parameter be given for real inputs, and will further require that "
    "return_complex=True in a future PyTorch release."
)


# --- windows


def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **options: Any) -> Tensor:
    """0.5 - 0.5*cos(2*pi*k/n) for k from 0 to below `window_length`; n is `window_length` if it is `periodic`, so that
    the window continues itself, and else one less, so that it is symmetric.

    `dtype` defaults to the default dtype; `device` and `requires_grad` are those of `tensor`.
    """
    return _cosines((0.5, 0.5), window_length, periodic, dtype, options)


def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """alpha - beta*cos(2*pi*k/n); see `hann_window`."""
    return _cosines((alpha, beta), window_length, periodic, options.pop("dtype", None), options)


def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **options: Any) -> Tensor:
    """0.42 - 0.5*cos(2*pi*k/n) + 0.08*cos(4*pi*k/n); see `hann_window`."""
    return _cosines((0.42, 0.5, 0.08), window_length, periodic, dtype, options)


def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """i0(beta*sqrt(1 - (2*k/n - 1)**2))/i0(beta); see `hann_window`."""

    def of_part(xp: Any, part: Any) -> Any:
        return xp.i0(beta * xp.sqrt(1.0 - (2.0 * part - 1.0) ** 2)) / xp.i0(beta)

    return _window(of_part, window_length, periodic, dtype, options)


def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **options: Any) -> Tensor:
    """The triangle 1 - abs(2*k/n - 1); see `hann_window`."""
    return _window(lambda xp, part: 1.0 - xp.abs(2.0 * part - 1.0), window_length, periodic, dtype, options)


def _cosines(weights: Any, length: Any, periodic: bool, dtype: Any, options: Any) -> Tensor:
    """A sum of cosines of 0, 1, 2, … turns, with alternating signs."""

    def of_part(xp: Any, part: Any) -> Any:
        terms = [(-1) ** turns * w * xp.cos(2.0 * math.pi * turns * part) for turns, w in enumerate(weights)]
        return sum(terms[1:], terms[0])

    return _window(of_part, length, periodic, dtype, options)


def _window(of_part: Any, length: Any, periodic: bool, dtype: Any, options: Any) -> Tensor:
    """The window whose value after a part of its length is `of_part` of it; 1 for a single element."""
    (count,) = read_shape((length,))
    limits.charge(count)
    last = count if periodic else count - 1
    made = arrays.made(lambda xp: of_part(xp, xp.arange(count) / last) if count > 1 else xp.ones(count))
    return new_leaf(made, dtype=dtype or arrays.default_dtype(), **options)


# --- transforms


def stft(
    input: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:
    """The Fourier transforms of windows of a signal: a complex matrix with a row for each frequency and a column for each
    window, or a batch of them for signals in the rows of a matrix.

    A window has `n_fft` samples, `hop_length` (a quarter of it) behind the one before, multiplied by `window`, which is
    padded to `n_fft`. With `center` the signal is padded so that the first window is centred at the first sample. For
    real signals the frequencies of 0 and above are given, unless `onesided` is False.
    Raises CallError if `return_complex` is not given for a real signal, ShapeError for sizes that do not fit.
    """
    expect(input, Tensor, "a signal is a tensor")
    size, hop, factors = _windows(input, n_fft, hop_length, win_length, window)
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft expected a 1D or 2D tensor, and this one has {input.ndim} axes")
    is_complex = arrays.is_complex(input.inner)
    if return_complex is None and not is_complex:
        raise CallError(_NO_PARAMETER)
    if is_complex and onesided:
        raise CallError("Cannot have onesided output if window or input is complex")
    signal = input
    if center:
        signal = padded(input, [(0, 0)] * (input.ndim - 1) + [(size // 2, size // 2)], pad_mode, 0.0)
    frames = unfold(signal, -1, size, hop) * factors
    transform = fft if is_complex or onesided is False else rfft
    found = swapaxes(transform(frames, norm=_NORMS[normalized]), -1, -2)
    return view_as_real(found) if return_complex is False else found


def istft(
    input: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """The signal of which `input` is the `stft` with the same arguments, or where no signal has it, the nearest one in
    the sense of least squares; cut to a `length` or padded with zeros.

    Raises CallError for real numbers, ShapeError for sizes that do not fit, EvaluationError where the windows leave out
    a part of the signal.
    """
    expect(input, Tensor, "a spectrogram is a tensor")
    if not arrays.is_complex(input.inner):
        raise CallError("istft requires a complex-valued input tensor matching the output from stft")
    if input.ndim not in (2, 3):
        raise ShapeError(f"istft expected a 2D or 3D tensor, and this one has {input.ndim} axes")
    size, hop, factors = _windows(input, n_fft, hop_length, win_length, window)
    columns = swapaxes(input, -1, -2)
    given, wanted = columns.shape[-1], size if onesided is False or return_complex else size // 2 + 1
    if given != wanted:
        raise ShapeError(f"istft expected the frequency dimension (3rd to the last) to be {wanted}, and it is {given}")
    norm = _NORMS[normalized]
    half = columns[..., : size // 2 + 1]
    frames = ifft(columns, norm=norm) if return_complex else irfft(half, size, norm=norm)
    whole = _overlapped(frames * factors, hop)
    envelope = _overlapped(broadcast_to(factors * factors, (frames.shape[-2], size)), hop)
    start = size // 2 if center else 0
    end = whole.shape[-1] - start if length is None else start + integer(length, "a length")
    whole, envelope = whole[..., start:end], envelope[start:end]
    if not envelope.size or float(min_(absolute(envelope.detach()))) < _LEAST_ENVELOPE:
        raise EvaluationError("the windows leave out a part of the signal, which istft cannot restore")
    found = whole / envelope
    missing = 0 if length is None else end - start - found.shape[-1]
    return padded(found, [(0, 0)] * (found.ndim - 1) + [(0, missing)], "constant", 0.0) if missing > 0 else found


def _windows(input: Tensor, n_fft: Any, hop_length: Any, win_length: Any, window: Any) -> tuple[int, int, Any]:
    """The size of a window, the distance of windows, and the factors of the samples in one."""
    size = integer(n_fft, "n_fft")
    hop = size // 4 if hop_length is None else integer(hop_length, "hop_length")
    inside = size if win_length is None else integer(win_length, "win_length")
    if size < 1 or hop < 1 or not 0 < inside <= size:
        raise ShapeError(f"windows of {inside} in {size} samples, at a distance of {hop}, are not possible")
    factors = window
    if window is None:
        factors = new_leaf(arrays.made(lambda xp: xp.ones(inside)), dtype=arrays.real_dtype(input.dtype))
    if factors.shape != (inside,):
        raise ShapeError(f"expected a window of {inside} elements, and its shape is {list(factors.shape)}")
    before = (size - inside) // 2
    return size, hop, padded(factors, [(before, size - inside - before)], "constant", 0.0)


def _overlapped(frames: Any, hop: int) -> Any:
    """The sums of frames at their places along the last axis."""
    *batch, count, size = frames.shape
    length = size + hop * (count - 1)
    limits.charge(count * size)
    places = arrays.numpy_namespace().arange(count)[:, None] * hop + arrays.numpy_namespace().arange(size)
    return scatter(frames, (*(slice(None) for _ in batch), places), (*batch, length))
