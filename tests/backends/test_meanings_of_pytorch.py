"""Names that mean something else in PyTorch than in NumPy have PyTorch's meaning and gradient, and any order."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

MATRIX = [[3.0, 1.0, 2.0, 3.0], [0.5, 7.0, -1.0, 2.0]]
PROGRAMS = [
    "torch.std(x)",
    "torch.var(x, dim=1).sum()",
    "torch.std(x, 0, correction=0).sum()",
    "torch.var(x, dim=0, keepdim=True, unbiased=False).sum()",
    "torch.max(x)",
    "torch.max(x, dim=1)[0].sum()",
    "torch.min(x, 0).values.prod()",
    "torch.sum(x.max(1)[0] * x.min(1, keepdim=True)[0])",
    "torch.max(x, x*x).sum()",
    "torch.sort(x)[0][:, 1].sum()",
    "torch.sort(x, descending=True).values[:, 0].prod()",
    "(x.sort(1)[0] * torch.sort(x, 1)[1]).sum()",
    "torch.median(x)",
    "torch.median(x, dim=1)[0].sum()",
    "torch.nanmedian(torch.where(x > 0.7, x, torch.nan))",
    "torch.nanmedian(torch.where(x > 0.7, x, torch.nan), dim=1)[0].nansum()",
    "torch.sum(x.repeat(2, 1)**2)",
    "(torch.max(x, dim=1)[1] * x[:, 0]).sum()",
    "(torch.nn.functional.pad(x, (1, 2, 0, 1), value=2.0)**2).sum()",
    "torch.dot(x[0], x[1])",
    "(torch.svd(x)[2]**2)[:, 0].sum() + torch.svd(x)[1].prod()",
    "torch.linalg.vander(x[0])[:, 3].sum()",
    "torch.nn.functional.gelu(x, approximate='tanh').sum()",
    "torch.sum(input=torch.maximum(input=x, other=-x), dim=1).prod()",
    "torch.std(x, False) + x.var(True)",
    "(x.where(x > 1, -x) * torch.sum(x)).sum()",
    "(torch.meshgrid(x[0], x[1])[0] * x[:, :1].sum()**torch.arange(4)).sum()",
    "(torch.nn.functional.pad(x, (2, 0), 'reflect')**2 * torch.arange(6)).sum()",
    "torch.sum(x.split(3, dim=1)[0]**2)",
]


# Where numbers of the matrix are at a kink, or tie, their second derivatives do not exist.
AT_A_KINK = {
    "torch.max(x, x*x).sum()",
    "(x.where(x > 1, -x) * torch.sum(x)).sum()",
    "torch.sum(x.max(1)[0] * x.min(1, keepdim=True)[0])",
    "torch.sort(x, descending=True).values[:, 0].prod()",
}


@pytest.mark.filterwarnings("ignore:torch.meshgrid")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_meaning_of_pytorch(program):
    x = torch.tensor(MATRIX, dtype=torch.float64, requires_grad=True)
    expected = eval(program, {"torch": torch, "x": x})
    (gradient,) = torch.autograd.grad(expected, x, create_graph=True)
    compiled = gradcli.compile(program)
    for _ in range(3):
        value, found = compiled.value_and_grad({"x": np.array(MATRIX)})
        np.testing.assert_allclose(value, expected.item(), 1e-12)
        np.testing.assert_allclose(found["x"], gradient.detach().numpy(), 1e-12, 1e-14)
    hessian = compiled.hessian({"x": np.array(MATRIX)})["x,x"]
    if hessian is not None and gradient.requires_grad:
        second = torch.stack([torch.autograd.grad(g, x, retain_graph=True)[0] for g in gradient.flatten()])
        there = ~np.isnan(hessian) if program in AT_A_KINK else np.full(hessian.shape, True)
        assert there.any()
        np.testing.assert_allclose(hessian[there], second.numpy().reshape(hessian.shape)[there], 1e-9, 1e-11)


def test_several_targets_are_values_and_places():
    value = gradcli.compile("v, i = torch.max(x, dim=1)\ntorch.sum(v*i)")(x=np.array(MATRIX))
    assert value == 7.0
