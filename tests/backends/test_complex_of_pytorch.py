"""Complex numbers on the backends, and beside PyTorch's own values, gradients and second derivatives."""

import cmath
import random

import numpy as np
import pytest
import torch
from test_complex_numbers import CASES_OF_COMPLEX, readout, turned

import gradcli
from gradcli import func, grad, tensor
from gradcli.arrays.spellings import MissingFunctionError
from gradcli.jax import grad as gradient_of_jax


@pytest.mark.parametrize("case", CASES_OF_COMPLEX, ids=lambda c: c.id)
def test_a_backend_has_the_values_and_gradients_of_numpy(case, xp):
    if xp.name == "standard":
        pytest.skip("the generic namespace mixes no real and complex arrays")
    points = [turned(o) for o in case.operands]
    own = [tensor(p, requires_grad=True) for p in points]
    expected = readout(case.call(*own))
    there = [tensor(xp.asarray(np.asarray(p)), requires_grad=True) for p in points]
    try:
        value = case.call(*there)
    except MissingFunctionError:
        assert case.entry.of_complex is not case.entry.forward
        return
    total = readout_there(value, xp)
    np.testing.assert_allclose(xp.to_numpy(total.inner), expected.item(), rtol=1e-9)
    for found, known in zip(grad(total, there), grad(expected, own)):
        assert "complex" in str(found.dtype)
        np.testing.assert_allclose(xp.to_numpy(found.inner), np.asarray(known), rtol=1e-9, atol=1e-9)


def readout_there(value, xp, seed=0):
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, (2, *value.shape))
    total = (gradcli.real(value) * xp.asarray(drawn[0])).sum()
    return total + (gradcli.imag(value) * xp.asarray(drawn[1])).sum() if value.is_complex() else total


# Functions whose names and branch cuts are the same in both.
UNARY = [
    "exp",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "log",
    "sqrt",
    "asinh",
    "atan",
    "conj",
    "sigmoid",
    "square",
    "reciprocal",
]
BINARY = ["add", "sub", "mul", "div"]


def drawn_program(seed):
    """A random program of complex numbers as a function of a library and two tensors."""
    choice = random.Random(seed)
    steps = []
    for _ in range(choice.randint(3, 7)):
        if choice.random() < 0.5:
            steps.append((choice.choice(UNARY), choice.randrange(99), None))
        else:
            steps.append((choice.choice(BINARY), choice.randrange(99), choice.randrange(99)))
    last = choice.choice(["abs", "real", "imag", "angle"])

    def run(library, z, w):
        known = [z, w, z * (0.3 - 0.4j) + w, abs(z) + 0.5]
        for name, i, j in steps:
            first = known[i % len(known)]
            known.append(
                getattr(library, name)(first) if j is None else getattr(library, name)(first, known[j % len(known)])
            )
        total = known[-1] * (0.7 + 0.2j) + known[-2]
        return getattr(library, last)(total).sum()

    return run


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_beside_pytorch(seed):
    run = drawn_program(seed)
    choice = random.Random(1000 + seed)
    points = [np.array([cmath.rect(choice.uniform(0.3, 1.5), choice.uniform(-3, 3)) for _ in range(3)]) for _ in "zw"]
    ours = [tensor(p, requires_grad=True) for p in points]
    theirs = [torch.tensor(p, requires_grad=True) for p in points]
    value, expected = run(gradcli, *ours), run(torch, *theirs)
    if not torch.isfinite(expected) or abs(expected) > 1e6:
        return
    np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-9, atol=1e-12)
    found = grad(value, ours, create_graph=True, allow_unused=True)
    known = torch.autograd.grad(expected, theirs, create_graph=True, allow_unused=True)
    for one, other in zip(found, known):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(np.asarray(one.detach()), other.detach().numpy(), rtol=1e-7, atol=1e-9)
    if known[0] is None or not known[0].requires_grad:
        return
    second = grad(abs(found[0] + 2.0).sum(), ours, allow_unused=True)
    wanted = torch.autograd.grad(abs(known[0] + 2.0).sum(), theirs, allow_unused=True)
    for one, other in zip(second, wanted):
        if one is not None and other is not None:
            scale = 1 + float(abs(other).max())
            np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=1e-6, atol=1e-8 * scale)


def test_the_conventions_of_pytorch_and_jax_side_by_side():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jax.config.update("jax_enable_x64", True)

    def loss(library):
        return lambda z: library.abs(z * z * (1 + 2j) + library.conj(z))

    point = 0.7 - 0.4j
    ours = func.grad(loss(gradcli))(tensor(point)).item()
    theirs = torch.tensor(point, dtype=torch.complex128, requires_grad=True)
    loss(torch)(theirs).backward()
    assert ours == pytest.approx(theirs.grad.item(), rel=1e-12)
    assert gradient_of_jax(loss(gradcli))(point).item() == pytest.approx(
        complex(jax.grad(loss(jax.numpy))(point)), rel=1e-12
    )
