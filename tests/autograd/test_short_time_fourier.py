"""Fourier transforms of windows: the gradient, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli.errors import GradcliError

SIGNAL = gradcli.linspace(0.0, 3.0, 40).sin()
WINDOW = gradcli.hann_window(8)


def transform(x: Any, **options: Any) -> Any:
    return gradcli.stft(x, 8, window=WINDOW, return_complex=True, **options)


def test_the_gradients_are_those_of_differences() -> None:
    x = SIGNAL.clone().requires_grad_()
    assert gradcli.autograd.gradcheck(lambda x: transform(x).abs().pow(2.0), (x,))
    assert gradcli.autograd.gradcheck(lambda x: gradcli.istft(0.5 * transform(x), 8, window=WINDOW), (x,))


def test_single_precision_stays_single() -> None:
    x = SIGNAL.float()
    spectrogram = gradcli.stft(x, 8, return_complex=True)
    assert spectrogram.dtype == "complex64"
    assert gradcli.istft(spectrogram, 8).dtype == "float32"


REFUSED = {
    "return_complex parameter": lambda: gradcli.stft(SIGNAL, 8),
    "1D or 2D": lambda: gradcli.stft(SIGNAL.reshape(2, 2, 10), 8, return_complex=True),
    "do not fit": lambda: gradcli.stft(SIGNAL, 80, center=False, return_complex=True),
    "are not possible": lambda: gradcli.stft(SIGNAL, 8, win_length=9, return_complex=True),
    "a window of 8 elements": lambda: gradcli.stft(SIGNAL, 8, window=gradcli.ones(7), return_complex=True),
    "onesided output": lambda: gradcli.stft(SIGNAL + 0j, 8, onesided=True, return_complex=True),
    "complex-valued input": lambda: gradcli.istft(transform(SIGNAL).abs(), 8),
    "frequency dimension": lambda: gradcli.istft(transform(SIGNAL), 10),
    "leave out a part": lambda: gradcli.istft(transform(SIGNAL, center=False), 8, window=WINDOW, center=False),
}


@pytest.mark.parametrize("message", REFUSED)
def test_it_is_refused(message: str) -> None:
    with pytest.raises(GradcliError, match=message):
        REFUSED[message]()
