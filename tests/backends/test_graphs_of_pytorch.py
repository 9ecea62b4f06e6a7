"""Graphs of gradients, and the names of nodes, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
X, W, B = [[0.5, -1.2, 2.0], [1.5, 0.3, -0.7]], [[0.2, -0.4], [1.0, 0.6], [-0.8, 0.9]], [0.1, -0.2]
# Functions of a tensor in terms of a library and of its `nn.functional`.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu": lambda m, f, z: m.relu(z),
    "leaky_relu": lambda m, f, z: f.leaky_relu(z, 0.1),
    "hardtanh": lambda m, f, z: f.hardtanh(z),
    "relu6": lambda m, f, z: f.relu6(z),
    "threshold": lambda m, f, z: f.threshold(z, 0.1, 20.0),
    "hardshrink": lambda m, f, z: f.hardshrink(z),
    "softshrink": lambda m, f, z: f.softshrink(z),
    "max_pool2d": lambda m, f, z: f.max_pool2d(z.reshape(1, 1, 2, 2), 2),
    "avg_pool2d": lambda m, f, z: f.avg_pool2d(z.reshape(1, 1, 2, 2), 2),
    "pow 1": lambda m, f, z: z**1,
    "pow 0": lambda m, f, z: z**0,
    "pow 2": lambda m, f, z: z**2,
    "abs": lambda m, f, z: z.abs(),
    "sign": lambda m, f, z: m.sign(z),
    "floor": lambda m, f, z: m.floor(z),
    "round": lambda m, f, z: m.round(z),
    "clamp": lambda m, f, z: m.clamp(z, -0.5, 0.5),
    "maximum": lambda m, f, z: m.maximum(z, m.zeros_like(z)),
    "where": lambda m, f, z: m.where(z > 0, z, m.zeros_like(z)),
    "max": lambda m, f, z: z.max(),
    "sum": lambda m, f, z: z.sum(),
    "mean": lambda m, f, z: z.mean(),
    "0*z": lambda m, f, z: z * 0,
    "z - z": lambda m, f, z: z - z,
    "tanh": lambda m, f, z: m.tanh(z),
    "sigmoid": lambda m, f, z: m.sigmoid(z),
    "softplus": lambda m, f, z: f.softplus(z),
    "exp": lambda m, f, z: m.exp(z),
    "detached factor": lambda m, f, z: z.detach() * z,
    "straight through": lambda m, f, z: z + (m.round(z) - z).detach(),
    "gelu": lambda m, f, z: f.gelu(z),
    "l1_loss": lambda m, f, z: f.l1_loss(z, m.ones_like(z)),
    "mse_loss": lambda m, f, z: f.mse_loss(z, m.ones_like(z)),
    "smooth_l1_loss": lambda m, f, z: f.smooth_l1_loss(z, m.ones_like(z)),
    "huber_loss": lambda m, f, z: f.huber_loss(z, m.ones_like(z)),
    "norm": lambda m, f, z: z.norm(),
    "index": lambda m, f, z: z[0],
    "relu twice": lambda m, f, z: m.relu(m.relu(z) - 0.1),
    "relu squared": lambda m, f, z: m.relu(z) ** 2,
}


def _shown(gradient: Any) -> Any:
    return None if gradient is None else [round(float(v), 9) + 0.0 for v in gradient.detach().reshape(-1)]


def _outcome(library: Any, function: Callable[[Any, Any, Any], Any], **options: Any) -> dict[str, Any]:
    x, w, b = (library.tensor(data, requires_grad=True, **options) for data in (X, W, B))
    autograd = library.autograd
    y = function(library, library.nn.functional, x @ w + b)
    (slope,) = autograd.grad(y.sum(), x, create_graph=True, allow_unused=True)
    found: dict[str, Any] = {"slope": _shown(slope), "requires_grad": slope.requires_grad}
    if slope.requires_grad:
        for name, wanted in {"unused": {"allow_unused": True}, "zeros": {"materialize_grads": True}}.items():
            gradients = autograd.grad((slope**2).sum(), (x, w, b), retain_graph=True, **wanted)
            found[name] = [_shown(g) for g in gradients]
        (slope**2).sum().backward()
        found["grad"] = [_shown(leaf.grad) for leaf in (x, w, b)]
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_gradients_are_none_or_zeros_where_those_of_pytorch_are(name: str) -> None:
    expected = _outcome(torch, FUNCTIONS[name], dtype=torch.float64)
    assert _outcome(gradcli, FUNCTIONS[name]) == expected


@pytest.mark.parametrize("power", [1, 2, 3])
def test_whole_powers_have_a_derivative_of_zeros(power: int) -> None:
    orders = []
    for library in (torch, gradcli):
        x = library.tensor(1.5, requires_grad=True)
        y, found = x**power, []
        for _ in range(power + 1):
            (y,) = library.autograd.grad(y, x, create_graph=True)
            found.append((y.item(), y.requires_grad))
        orders.append(found)
    assert orders[0] == orders[1]


# As PyTorch has them in one node.
NAMED: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{
        name: FUNCTIONS[name]
        for name in ("relu", "leaky_relu", "hardtanh", "relu6", "threshold", "hardshrink", "softshrink", "max_pool2d")
    },
    **{name: FUNCTIONS[name] for name in ("avg_pool2d", "tanh", "sigmoid", "softplus", "exp", "pow 1", "pow 2")},
    **{name: FUNCTIONS[name] for name in ("gelu", "mse_loss", "smooth_l1_loss", "huber_loss", "norm", "index")},
    "linear": lambda m, f, z: f.linear(z, m.ones_like(z), m.ones_like(z)[0]),
    "addmm": lambda m, f, z: m.addmm(z[0], z, z),
    "silu": lambda m, f, z: f.silu(z),
    "selu": lambda m, f, z: f.selu(z),
    "celu": lambda m, f, z: f.celu(z),
    "mish": lambda m, f, z: f.mish(z),
    "hardswish": lambda m, f, z: f.hardswish(z),
    "hardsigmoid": lambda m, f, z: f.hardsigmoid(z),
    "logsigmoid": lambda m, f, z: f.logsigmoid(z),
    "log_softmax": lambda m, f, z: m.log_softmax(z, 1),
    "logsumexp": lambda m, f, z: m.logsumexp(z, 1),
    "cross_entropy": lambda m, f, z: f.cross_entropy(z, m.tensor([0, 1])),
    "nll_loss": lambda m, f, z: f.nll_loss(z, m.tensor([0, 1])),
    "binary_cross_entropy": lambda m, f, z: f.binary_cross_entropy(m.sigmoid(z), m.ones_like(z)),
    "with_logits": lambda m, f, z: f.binary_cross_entropy_with_logits(z, m.ones_like(z)),
    "layer_norm": lambda m, f, z: f.layer_norm(z, (2,)),
    "lerp": lambda m, f, z: m.lerp(z, m.ones_like(z), 0.3),
    "addcmul": lambda m, f, z: m.addcmul(z, z, z),
    "addcdiv": lambda m, f, z: m.addcdiv(z, z, m.ones_like(z)),
    "var": lambda m, f, z: z.var(),
    "std": lambda m, f, z: z.std(),
    "frac": lambda m, f, z: m.frac(z),
    "clamp_min": lambda m, f, z: m.clamp_min(z, 0.0),
    "cdist": lambda m, f, z: m.cdist(z, m.ones_like(z)),
    "conv1d": lambda m, f, z: f.conv1d(z[None], z[None]),
}


@pytest.mark.cases(40)
@pytest.mark.parametrize("name", NAMED)
def test_nodes_have_the_names_of_pytorch(name: str) -> None:
    names = []
    for library in (torch, gradcli):
        z = library.tensor([[0.5, -1.2], [2.0, 0.3]], requires_grad=True)
        node = NAMED[name](library, library.nn.functional, z).grad_fn
        names.append((node.name(), type(node).__name__, repr(type(node))))
    assert names[0] == names[1]


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "tanh", "sigmoid", "softplus", "exp", "pow 2", "sum"])
def test_the_nodes_of_gradients_have_the_names_of_pytorch(name: str) -> None:
    names = []
    for library in (torch, gradcli):
        z = library.tensor([0.5, -1.2], requires_grad=True)
        y = FUNCTIONS[name](library, library.nn.functional, z) ** 1
        (slope,) = library.autograd.grad(y.sum(), z, create_graph=True)
        names.append(None if slope.grad_fn is None else slope.grad_fn.name())
    assert names[0] == names[1]


def test_a_layer_with_a_bias_is_one_node() -> None:
    found = []
    for library in (gradcli, torch):
        x, w, b = (library.tensor(v, requires_grad=True) for v in (X, [*zip(*W)], B))
        node = library.nn.functional.linear(x, w, b).grad_fn
        bias, rows, _ = node.next_functions
        found.append((node.name(), bias[0].variable is b, rows[0].variable is x))
    assert found[0] == found[1] == ("AddmmBackward0", True, True)
