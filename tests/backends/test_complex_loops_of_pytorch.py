"""Compares gradients of long loops of complex numbers with PyTorch's."""

from __future__ import annotations

import pytest

import gradcli
from tests.loops.test_complex_loops import READOUTS

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def iterated(z, c):
    for _ in range(30):
        z = z * z + c
    return z


def newton(z, c):
    for _ in range(20):
        z = z - (z**3 - c) / (3 * z**2)
    return z


def ladder(z, c):
    y = 1 / c
    for _ in range(30):
        y = 1 / (z + 1 / (c + y))
    return y


def matrices(z, c):
    one = torch.ones((), dtype=torch.complex128)
    a, v = torch.stack([z, 1j * one, c, 0.2 * one]).reshape(2, 2), torch.stack([one, c])
    for _ in range(20):
        v = a @ v * 0.7 + z
    return v.sum()


TORCH = {"an iterated map": iterated, "Newton's method": newton, "a ladder network": ladder, "small matrices": matrices}


@pytest.mark.parametrize("name", TORCH)
def test_gradients_are_those_of_pytorch(name):
    source, values = READOUTS[name]
    leaves = {n: torch.tensor(v, dtype=torch.complex128, requires_grad=True) for n, v in values.items()}
    found = gradcli.compile(source).value_and_grad(values)
    expected = TORCH[name](**leaves)
    (expected * (0.8 - 0.6j)).real.backward()
    assert found[0] == pytest.approx((expected * (0.8 - 0.6j)).real.item(), rel=1e-13)
    for n, leaf in leaves.items():
        assert found[1][n] == pytest.approx(leaf.grad.item(), rel=1e-11)
