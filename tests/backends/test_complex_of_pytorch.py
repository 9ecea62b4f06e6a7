"""Compares complex matrices and Fourier transforms with PyTorch: values, gradients, and gradients of gradients."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import linalg, tensor
from tests.fuzz import complex_modes

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RANDOM = np.random.default_rng(1)


def random(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)


SQUARE, TALL, BATCH = random(3, 3), random(4, 3), random(2, 3, 3)
DEFINITE = SQUARE @ SQUARE.conj().T + np.eye(3)


def hermitian(x):
    return 0.5 * (x + x.mH)


# The function here, that of PyTorch, and an operand. PyTorch reads one triangle of a Hermitian matrix, gradcli both.
PAIRS = {
    "cholesky": (linalg.cholesky, lambda x: torch.linalg.cholesky(hermitian(x)), DEFINITE),
    "eigvalsh": (linalg.eigvalsh, lambda x: torch.linalg.eigvalsh(hermitian(x)), DEFINITE),
    "eigh": (lambda x: abs(linalg.eigh(x)[1]), lambda x: torch.linalg.eigh(hermitian(x))[1].abs(), DEFINITE),
    "q": (lambda x: linalg.qr(x)[0], lambda x: torch.linalg.qr(x)[0], TALL),
    "r": (lambda x: linalg.qr(x)[1], lambda x: torch.linalg.qr(x)[1], BATCH),
    "svdvals": (linalg.svdvals, torch.linalg.svdvals, TALL),
    "svd": (
        lambda x: (lambda u, s, vh: (u * gradcli.sin(s)[..., None, :]) @ vh)(*linalg.svd(x, full_matrices=False)),
        lambda x: (lambda u, s, vh: (u * torch.sin(s)[..., None, :]) @ vh)(*torch.linalg.svd(x, False)),
        TALL,
    ),
    "pinv": (linalg.pinv, torch.linalg.pinv, TALL),
    "inv": (linalg.inv, torch.linalg.inv, BATCH),
    "det": (linalg.det, torch.linalg.det, BATCH),
    "logdet": (gradcli.logdet, torch.logdet, SQUARE),
    "slogdet": (lambda x: linalg.slogdet(x)[0] + 0.3, lambda x: torch.linalg.slogdet(x)[0] + 0.3, SQUARE),
    "matrix_exp": (gradcli.matrix_exp, torch.linalg.matrix_exp, BATCH),
    "eigvals": (linalg.eigvals, torch.linalg.eigvals, SQUARE),
    "eigvals of real": (linalg.eigvals, torch.linalg.eigvals, SQUARE.real),
    "eig": (lambda x: abs(linalg.eig(x)[1]), lambda x: torch.linalg.eig(x)[1].abs(), BATCH),
    "norm": (lambda x: linalg.norm(x, "nuc"), lambda x: torch.linalg.norm(x, "nuc"), TALL),
    "fft": (lambda x: gradcli.fft.fft(x, 5, 0, "ortho"), lambda x: torch.fft.fft(x, 5, 0, "ortho"), TALL),
    "ifftn": (gradcli.fft.ifftn, torch.fft.ifftn, BATCH),
    "rfft2": (gradcli.fft.rfft2, torch.fft.rfft2, TALL.real),
    "irfft": (lambda x: gradcli.fft.irfft(x, 7), lambda x: torch.fft.irfft(x, 7), TALL),
    "hfft": (gradcli.fft.hfft, torch.fft.hfft, TALL),
    "ihfftn": (gradcli.fft.ihfftn, torch.fft.ihfftn, TALL.real),
}


def loss(y):
    size = abs(y)
    return (size**2).sum() + size.sum()


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_pytorchs(name):
    function, theirs, x = PAIRS[name]
    leaf, other = tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    value, wanted = function(leaf), theirs(other)
    np.testing.assert_allclose(value.detach(), wanted.detach().resolve_conj(), rtol=1e-9, atol=1e-12)
    (first,) = gradcli.grad(loss(value), [leaf], create_graph=True)
    (first_wanted,) = torch.autograd.grad(loss(wanted), other, create_graph=True)
    np.testing.assert_allclose(first.detach(), first_wanted.detach().resolve_conj(), rtol=1e-8, atol=1e-9)
    (second,) = gradcli.grad((abs(first) ** 3).sum(), [leaf])
    (second_wanted,) = torch.autograd.grad((abs(first_wanted) ** 3).sum(), other)
    np.testing.assert_allclose(second, second_wanted.resolve_conj(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("vectors", [lambda m, x: m.eig(x)[1], lambda m, x: m.eigh(x)[1], lambda m, x: m.svd(x)[0]])
def test_a_loss_that_depends_on_phases_is_an_error_in_both(vectors):
    with pytest.raises(RuntimeError):
        vectors(torch.linalg, torch.tensor(DEFINITE * (1 + 0j), requires_grad=True)).real.sum().backward()
    with pytest.raises(RuntimeError):
        gradcli.real(vectors(linalg, tensor(DEFINITE, requires_grad=True))).sum().backward()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(1000, 1060, 20))
def test_random_programs_are_pytorchs(first):
    """In value, gradient and second derivative; `python -m tests.fuzz.complex_modes` compares more of them."""
    for i in range(first, first + 20):
        current = complex_modes.trial(0, i)
        if current is not None:
            found = [*complex_modes.differences(current, {"beside_pytorch": complex_modes.beside_pytorch})]
            assert not found, (i, current.text, current.words(), found)
