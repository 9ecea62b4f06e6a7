"""`gradcli.autograd.functional` and `forward_ad` give what PyTorch's modules of these names give."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# PyTorch's own, of its rules for series.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

X, V = np.array([[0.3, 0.7, 1.1], [0.2, 0.4, 0.9]]), np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
Y, U = np.array([0.5, 1.5]), np.array([2.0, -1.0])


def layers(m):
    return lambda x, y: (m.tanh(x * y[:, None]).sum(0), m.exp(y) * x[:, 0])


def energy(m):
    return lambda x, y: (m.sin(x) * y[:, None]).sum() * m.prod(y)


# Of a module, its `functional`, what makes a tensor of an array, and options.
PRODUCTS = {
    "vjp": lambda m, f, t, o: f.vjp(layers(m), (t(X), t(Y)), (t(V[0]), t(U)), **o),
    "jvp": lambda m, f, t, o: f.jvp(layers(m), (t(X), t(Y)), (t(V), t(U)), **o),
    "vhp": lambda m, f, t, o: f.vhp(energy(m), (t(X), t(Y)), (t(V), t(U)), **o),
    "hvp": lambda m, f, t, o: f.hvp(energy(m), (t(X), t(Y)), (t(V), t(U)), **o),
    "jacobian": lambda m, f, t, o: f.jacobian(layers(m), (t(X), t(Y)), **o),
    "hessian": lambda m, f, t, o: f.hessian(energy(m), (t(X), t(Y)), **o),
    "one input": lambda m, f, t, o: f.jacobian(lambda x: m.exp(x).sum(1), t(X), **o),
    "a result of one": lambda m, f, t, o: f.vjp(lambda y: (m.exp(y) * y).sum(), t(Y), **o),
}


def arrays(value):
    if isinstance(value, tuple):
        return tuple(map(arrays, value))
    return None if value is None else np.asarray(value.detach())


def same(ours, theirs):
    assert isinstance(ours, tuple) is isinstance(theirs, tuple)
    assert (ours is None) is (theirs is None)
    if isinstance(ours, tuple):
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif ours is not None:
        assert np.shape(ours) == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"create_graph": True}], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_functional(name, options):
    ours = PRODUCTS[name](gradcli, gradcli.autograd.functional, gradcli.tensor, options)
    same(arrays(ours), arrays(PRODUCTS[name](torch, torch.autograd.functional, torch.tensor, options)))


def in_place(m, t, x, y):
    made = x * 2
    made[0] *= y[0]
    made.T[1].add_(y)
    return made


def in_a_buffer(m, t, x, y):
    made = t(np.ones((2, 3)))
    row = made[1]
    row += x[0]
    made.view(-1)[:2].mul_(y)
    return row * row


# Of duals (X, V) and (Y, U).
DUALS = {
    "results": lambda m, t, x, y: layers(m)(x, y),
    "scalar": lambda m, t, x, y: energy(m)(x, y),
    "matrix": lambda m, t, x, y: y @ x,
    "views": lambda m, t, x, y: x.T.reshape(2, 3)[:, ::2] * y,
    "in place": in_place,
    "in a buffer": in_a_buffer,
    "detached": lambda m, t, x, y: x.detach() * 2,
    "one without": lambda m, t, x, y: x * t(Y)[:, None],
    "chosen": lambda m, t, x, y: m.where(x > 0.5, x * x, y[:, None]),
    "gradient": lambda m, t, x, y: gradient(m)((m.sin(x) * y[:, None]).sum(), x),
    "gradient that can be differentiated": lambda m, t, x, y: gradient(m)((x**3).sum(), x, create_graph=True),
}


def gradient(m):
    return m.autograd.grad


@pytest.mark.parametrize("name", DUALS)
def test_duals(name):
    found = []
    for m, t in ((gradcli, gradcli.tensor), (torch, torch.tensor)):
        fw = import_module(f"{m.__name__}.autograd.forward_ad")
        with fw.dual_level():
            duals = [fw.make_dual(t(x, requires_grad=True), t(v)) for x, v in ((X, V), (Y, U))]
            made = DUALS[name](m, t, *duals)
            pairs = [fw.unpack_dual(y) for y in (made if isinstance(made, tuple) else (made,))]
            found.append(tuple(arrays(tuple(pair)) for pair in pairs))
    same(*found)
