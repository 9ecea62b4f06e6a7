"""Tests Fourier transforms: their values are those of NumPy, and their derivatives those of differences."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import fft, func, tensor
from tests.complex_checks import check_gradients

RANDOM = np.random.default_rng(0)
SIGNAL, IMAGE = RANDOM.standard_normal((3, 5)), RANDOM.standard_normal((2, 3, 4))
OF_REAL = ("rfft", "ihfft")
ALONG = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OVER = tuple(name + part for name in ("fft", "ifft", "rfft", "irfft") for part in ("2", "n"))


def operand(name: str, x: np.ndarray) -> np.ndarray:
    return x if name.removesuffix("2").removesuffix("n") in OF_REAL else x + 1j * np.roll(x, 1)


def curved(y):
    """A real number that depends on all parts of a transform."""
    return (abs(y - 0.3) ** 3).sum()


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("n", [None, 3, 4, 7, 8])
@pytest.mark.parametrize("axis", [-1, 0])
def test_along_an_axis(name, n, axis):
    x = operand(name, SIGNAL)
    for norm in (None, "ortho", "forward"):
        found = getattr(fft, name)(tensor(x), n, axis, norm)
        np.testing.assert_allclose(found, getattr(np.fft, name)(x, n, axis, norm), atol=1e-14)


@pytest.mark.parametrize("name", OVER)
@pytest.mark.parametrize(("s", "axes"), [(None, None), ((3, 5), (1, 2)), ((2, 4), (2, 0)), (None, (0, 1))])
def test_over_axes(name, s, axes):
    x = operand(name, IMAGE)
    given = {} if axes is None else {"s": s, "axes": axes}
    np.testing.assert_allclose(getattr(fft, name)(tensor(x), **given), getattr(np.fft, name)(x, **given), atol=1e-14)


@pytest.mark.parametrize("name", [*ALONG, *OVER, "hfftn", "ihfftn"])
def test_derivatives_are_those_of_differences(name):
    x = operand(name, IMAGE if name in OVER else SIGNAL)
    check_gradients(lambda z: curved(getattr(fft, name)(z)), x[:2, :2])


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("n", [3, 4, 8])
@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_derivatives_of_other_numbers_of_points(name, n, norm):
    check_gradients(lambda z: curved(getattr(fft, name)(z, n, 0, norm)), operand(name, SIGNAL)[:, :2])


def test_real_signals_have_real_gradients():
    x = tensor(SIGNAL, requires_grad=True)
    curved(fft.fft(x)).backward()
    assert x.grad.dtype == "float64"
    check_gradients(lambda z: curved(fft.fft(z)), SIGNAL[:2])
    check_gradients(lambda z: curved(fft.irfft(z)), SIGNAL[:2])


def test_jacobians_backward_and_forward():
    x = tensor(SIGNAL[0])
    wanted = np.array([np.fft.irfft(row) for row in np.eye(5)]).T
    np.testing.assert_allclose(func.jacrev(fft.irfft)(x), wanted, atol=1e-15)
    np.testing.assert_allclose(func.jacfwd(fft.irfft)(x), wanted, atol=1e-15)


def test_batches_are_transformed_row_by_row():
    rows = func.vmap(lambda row: abs(fft.rfft(row, 4)))(tensor(SIGNAL))
    np.testing.assert_allclose(rows, abs(np.fft.rfft(SIGNAL, 4)), atol=1e-15)
    columns = func.vmap(lambda image: fft.irfftn(fft.rfftn(image, axes=(0, 1)), IMAGE.shape[1:], (0, 1)))(tensor(IMAGE))
    np.testing.assert_allclose(columns, IMAGE, atol=1e-15)


def test_single_precision_stays_single():
    x = tensor(SIGNAL, dtype="float32", requires_grad=True)
    assert fft.fft(x).dtype == "complex64"
    curved(fft.rfft(x)).backward()
    assert x.grad.dtype == "float32"


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_frequencies(n):
    np.testing.assert_allclose(fft.fftfreq(n, 0.3), np.fft.fftfreq(n, 0.3))
    np.testing.assert_allclose(fft.rfftfreq(n, 0.3), np.fft.rfftfreq(n, 0.3))
    d = tensor(0.3, requires_grad=True)
    (fft.fftfreq(n, d) ** 2).sum().backward()
    assert d.grad == pytest.approx(-2 * (np.fft.fftfreq(n, 0.3) ** 2).sum() / 0.3)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name):
    for axes in (None, 0, (0, 1)):
        np.testing.assert_array_equal(getattr(fft, name)(tensor(SIGNAL), axes), getattr(np.fft, name)(SIGNAL, axes))


@pytest.mark.parametrize(
    "program",
    [
        "sum(abs(fft(x))**2)", "sum(abs(np.fft.fft(x))**2)", "torch.fft.fft(x, dim=0).abs().square().sum()",
        "sum(jnp.abs(jnp.fft.fft(x))**2)", "sum(abs(scipy.fft.fft(x))**2)",
        "from scipy.fft import fft as spectrum\nsum(abs(spectrum(x))**2)", "from numpy import fft\nsum(abs(fft.fft(x))**2)",
        "import torch.fft as t\nt.fft(x, norm='backward').abs().square().sum()",
    ],
)  # fmt: skip
def test_names_of_libraries(run, program):
    assert run("eval", program, "x=[1,2,0.5,-1]", "--json").json["grad"]["x"] == pytest.approx([8, 16, 4, -8])


def test_calls_of_numpy_with_tensors():
    x = tensor(SIGNAL, requires_grad=True)
    for found in (np.fft.rfft(x, axis=0), gradcli.numpy.fft.rfft(x, axis=0), gradcli.fft.rfft(x, dim=0)):
        np.testing.assert_allclose(found.detach(), np.fft.rfft(SIGNAL, axis=0), atol=1e-15)
        assert found.requires_grad
    assert gradcli.fft(x).grad_fn.name() == "FftR2CBackward0"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("fft(x, norm='half')", "there is no norm 'half'"),
        ("fft(x, n=0)", "'fft' needs at least one point, not 0"),
        ("irfft(x[:1])", "'irfft' needs at least one point, not 0"),
        ("fft(x[0])", "'fft' needs a vector or a tensor of more dimensions, and this is a number"),
        ("fft2(x)", "axis -2 is out of range for a tensor of 1 dimensions"),
        ("fftn(x, s=[1, 2], axes=[0])", "'fftn' has 2 sizes for 1 axes"),
        ("rfft(fft(x))", "'rfft' takes real numbers, and not complex ones"),
    ],
)
def test_errors(run, program, message):
    done = run("eval", program, "x=[1,2,0.5,-1]")
    assert done.status == 1
    assert done.err.startswith(f"error: {message}\n  | {program}\n")
