"""`gradcli.func` gives what `torch.func` gives, in each other, to a depth of three."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
import gradcli.func

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# PyTorch's own, of its rules for series and of what its linearize makes.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]

RANDOM = np.random.default_rng(0)
A, X, V = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=4), RANDOM.normal(size=4)
Y = RANDOM.normal(size=(5, 4))


def wave(m):
    return lambda x: (m.sin(x) * m.exp(x * 0.5)).sum()


def mixed(m):
    return lambda x: m.sin(x) * x.sum()


def layer(m):
    return lambda a, x: m.tanh(a @ x)


# Of a module of functions, one of functions of functions, and what makes a tensor of an array.
CASES = {
    "grad": lambda m, f, t: f.grad(wave(m))(t(X)),
    "gradgrad": lambda m, f, t: f.grad(lambda x: (f.grad(wave(m))(x) ** 2).sum())(t(X)),
    "grad3": lambda m, f, t: f.grad(f.grad(f.grad(lambda x: m.sin(x) * x**3)))(t(1.3)),
    "gv": lambda m, f, t: f.grad_and_value(wave(m))(t(X)),
    "aux": lambda m, f, t: f.grad(lambda x: ((x**2).sum(), {"k": x * 2}), has_aux=True)(t(X)),
    "argnums": lambda m, f, t: f.grad(lambda a, x: layer(m)(a, x).sum(), argnums=(0, 1))(t(A), t(X)),
    "vjp": lambda m, f, t: (lambda r: (r[0], r[1](t(np.arange(3.0)))))(f.vjp(layer(m), t(A), t(X))),
    "jvp": lambda m, f, t: f.jvp(mixed(m), (t(X),), (t(V),)),
    "jvp2": lambda m, f, t: f.jvp(lambda x: f.jvp(mixed(m), (x,), (t(V),))[1], (t(X),), (t(V * 2),)),
    "jvpjvpjvp": lambda m, f, t: f.jvp(
        lambda x: f.jvp(lambda x: f.jvp(lambda x: m.sin(x) * x**3, (x,), (t(V),))[1], (x,), (t(V),))[1],
        (t(X),),
        (t(V * 2),),
    ),
    "jvpconf": lambda m, f, t: f.jvp(lambda x: x * f.jvp(lambda y: x * y * y, (t(X),), (t(V),))[1], (t(X),), (t(V),)),
    "jvpgrad": lambda m, f, t: f.jvp(f.grad(wave(m)), (t(X),), (t(V),)),
    "gradjvp": lambda m, f, t: f.grad(lambda x: f.jvp(mixed(m), (x,), (t(V),))[1].sum())(t(X)),
    "gradjvpv": lambda m, f, t: f.grad(lambda v: (f.jvp(mixed(m), (t(X),), (v,))[1] ** 2).sum())(t(V)),
    "gradgradjvp": lambda m, f, t: f.grad(
        lambda x: (f.grad(lambda x: f.jvp(mixed(m), (x,), (t(V),))[1].sum())(x) ** 2).sum()
    )(t(X)),
    "gradjvpboth": lambda m, f, t: f.grad(
        lambda x: (f.jvp(mixed(m), (x,), (x * x,))[1] * f.jvp(mixed(m), (x,), (x * x,))[0]).sum()
    )(t(X)),
    "jacrev": lambda m, f, t: f.jacrev(mixed(m))(t(X)),
    "jacfwd": lambda m, f, t: f.jacfwd(mixed(m))(t(X)),
    "jacrev2": lambda m, f, t: f.jacrev(layer(m), argnums=(0, 1))(t(A), t(X)),
    "jacfwd2": lambda m, f, t: f.jacfwd(layer(m), argnums=(0, 1))(t(A), t(X)),
    "hess": lambda m, f, t: f.hessian(wave(m))(t(X)),
    "hess2": lambda m, f, t: f.hessian(lambda a, x: layer(m)(a, x).sum(), argnums=(0, 1))(t(A), t(X)),
    "hessmat": lambda m, f, t: f.hessian(lambda a: m.tanh(a @ t(X)))(t(A)),
    "revrev": lambda m, f, t: f.jacrev(f.jacrev(mixed(m)))(t(X)),
    "fwdfwd": lambda m, f, t: f.jacfwd(f.jacfwd(mixed(m)))(t(X)),
    "revfwd": lambda m, f, t: f.jacrev(f.jacfwd(mixed(m)))(t(X)),
    "fwd3": lambda m, f, t: f.jacfwd(f.jacrev(f.jacfwd(mixed(m))))(t(X)),
    "vmap": lambda m, f, t: f.vmap(mixed(m))(t(Y)),
    "vmapdims": lambda m, f, t: f.vmap(layer(m), in_dims=(None, 0), out_dims=1)(t(A), t(Y)),
    "vmapin1": lambda m, f, t: f.vmap(mixed(m), in_dims=1)(t(Y)),
    "vmapgrad": lambda m, f, t: f.vmap(f.grad(wave(m)))(t(Y)),
    "vmapgradw": lambda m, f, t: f.vmap(f.grad(lambda a, x: layer(m)(a, x).sum()), in_dims=(None, 0))(t(A), t(Y)),
    "gradvmap": lambda m, f, t: f.grad(lambda a: (f.vmap(lambda x: layer(m)(a, x))(t(Y)) ** 2).sum())(t(A)),
    "vmapvmap": lambda m, f, t: f.vmap(f.vmap(lambda x, y: x * y, in_dims=(None, 0)), in_dims=(0, None))(t(X), t(V)),
    "vmapjac": lambda m, f, t: f.vmap(f.jacrev(mixed(m)))(t(Y)),
    "vmapjacf": lambda m, f, t: f.vmap(f.jacfwd(mixed(m)))(t(Y)),
    "vmaphess": lambda m, f, t: f.vmap(f.hessian(wave(m)))(t(Y)),
    "vmapjvp": lambda m, f, t: f.vmap(lambda x: f.jvp(mixed(m), (x,), (x,)))(t(Y)),
    "jvpvmap": lambda m, f, t: f.jvp(f.vmap(mixed(m)), (t(Y),), (t(Y * 2),)),
    "vmapvjp": lambda m, f, t: f.vmap(f.vjp(mixed(m), t(X))[1])(t(Y)),
    "gradjacf": lambda m, f, t: f.grad(lambda w: f.jacfwd(lambda x: m.sin(w * x) * w.sum() * x.sum())(t(X)).sum())(
        t(V)
    ),
    "revrevjacf": lambda m, f, t: f.jacrev(f.jacrev(lambda w: f.jacfwd(lambda x: m.sin(w * x) * w.sum())(t(X)).sum(0)))(
        t(V)
    ),
    "lin": lambda m, f, t: (lambda r: (r[0], r[1](t(V))))(f.linearize(mixed(m), t(X))),
    "vmaplin": lambda m, f, t: f.vmap(f.linearize(mixed(m), t(X))[1])(t(Y)),
    "dict": lambda m, f, t: f.grad(lambda p: (m.sin(p["w"]) * p["b"][0]).sum())({"w": t(X), "b": (t(2.0),)}),
    "jacdict": lambda m, f, t: f.jacrev(lambda p: {"o": m.sin(p["w"]) * p["b"]})({"w": t(X), "b": t(2.0)}),
    "jacfdict": lambda m, f, t: f.jacfwd(lambda p: {"o": m.sin(p["w"]) * p["b"]})({"w": t(X), "b": t(2.0)}),
    "where": lambda m, f, t: f.vmap(f.grad(lambda x: m.where(x > 0, x**2, m.sin(x)).sum()))(t(Y)),
    "kinks": lambda m, f, t: f.jvp(
        lambda x: m.relu(x) + m.abs(x) + m.clip(x, -1, 0), (t(np.array([0.0, -1, 1, 0])),), (t(V),)
    ),
    "kinksmax": lambda m, f, t: f.jvp(
        lambda x: m.amax(x) + m.maximum(x, t(np.zeros(4))), (t(np.array([0.0, -1, 1, 1])),), (t(V),)
    ),
    "solve": lambda m, f, t: f.vmap(
        lambda x: f.jacrev(
            lambda z: (
                m.linalg.solve(t(np.eye(4) * 2) + m.outer(z, z), z)
                if m is torch
                else m.solve(t(np.eye(4) * 2) + m.outer(z, z), z)
            )
        )(x)
    )(t(Y)),
    "per-sample-hvp": lambda m, f, t: f.vmap(lambda x, v: f.jvp(f.grad(wave(m)), (x,), (v,))[1])(t(Y), t(Y * 2)),
    "nodep": lambda m, f, t: f.jacfwd(lambda x: t(np.ones(3)))(t(X)),
    "nodepr": lambda m, f, t: f.jacrev(lambda x: t(np.ones(3)))(t(X)),
    "kw": lambda m, f, t: f.grad(lambda x, s=1: (x * s).sum())(t(X), s=3),
    "vmapconst": lambda m, f, t: f.vmap(lambda x: t(2.0))(t(Y)),
    "vmaptuple": lambda m, f, t: f.vmap(lambda x: (x.sum(), x * 2), out_dims=(0, 1))(t(Y)),
}


def numbers(value):
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, tuple):
        return [n for item in value for n in numbers(item)]
    return [value.detach().numpy()]


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    expected = numbers(CASES[name](torch, torch.func, lambda x: torch.tensor(x, dtype=torch.float64)))
    found = numbers(CASES[name](gradcli, gradcli.func, gradcli.tensor))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, 1e-10, 1e-12)
        assert one.shape == other.shape
