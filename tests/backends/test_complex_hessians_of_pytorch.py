"""Compares second derivatives of real values by complex inputs with PyTorch's double backward."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import func, tensor
from gradcli.autograd import functional
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from tests.fuzz import commands

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

VALUES: dict[str, Any] = {
    "z": 0.7 - 0.4j,
    "w": -1.1 + 0.9j,
    "x": 0.8,
    "v": np.array([0.5 + 0.2j, -0.3 + 1.1j]),
    "A": np.array([[1.5 - 0.2j, 0.3j], [0.4 + 0.1j, -1.2 + 0.6j]]),
}
# Expressions that are the same in the language and in Python with the names of PyTorch.
PROGRAMS = (
    "abs(z)**2", "abs(z)", "abs(z)**3*abs(w)", "real(exp(z)*w)", "imag(z*w/(z + w))", "real(conj(z)*w)*imag(z)",
    "angle(z*w)", "abs(sin(z))**2", "real(log(z)*conj(w))", "abs(z)**2*exp(-x*abs(w)**2)", "real(z**3)*x",
    "real(sqrt(z)*tanh(w))", "abs(1/(1 + 1j*x*z))**2", "imag(cosh(z*x))", "real(z)**2*imag(z)**3", "real(z*w*x)",
    "abs(z - w)**2 + abs(z + w)", "real(z*conj(z))*real(w)", "abs(exp(1j*z))", "real(atan(z)*asinh(w))",
    "sum(abs(v)**2)", "sum(abs(v)**3)*x", "abs(sum(v*z))**2", "real(sum(exp(v)*conj(v)))", "sum(abs(A@v)**2)",
    "abs(det(A))**2", "real(sum(conj(v)*(A@v)))", "sum(abs(inv(A)@v))", "real(z*sum(A*A))", "angle(sum(v))*abs(z)",
)  # fmt: skip
THEIRS = {
    **{
        name: getattr(torch, name)
        for name in [
            "abs",
            "real",
            "imag",
            "conj",
            "angle",
            "exp",
            "log",
            "sqrt",
            "sin",
            "cosh",
            "tanh",
            "atan",
            "asinh",
            "sum",
        ]
    },
    "det": torch.linalg.det,
    "inv": torch.linalg.inv,
}


def names(program: str) -> list[str]:
    return [name for name in VALUES if name in gradcli.compile(program).inputs]


def numbers(x: Any) -> np.ndarray:
    return np.asarray(x.detach().resolve_conj().resolve_neg() if isinstance(x, torch.Tensor) else x)


def hessian_of_pytorch(program: str) -> dict[str, np.ndarray]:
    """The second derivatives along the axes of each pair of elements, by two backward passes."""
    leaves = {name: torch.tensor(np.asarray(VALUES[name]), requires_grad=True) for name in names(program)}
    gradients = torch.autograd.grad(eval(program, THEIRS | leaves), [*leaves.values()], create_graph=True)
    found = {}
    for name, gradient in zip(leaves, gradients):
        for label, part in parts(name, gradient):
            rows = [
                torch.autograd.grad(element, [*leaves.values()], retain_graph=True, allow_unused=True)
                if element.requires_grad
                else [None] * len(leaves)
                for element in part.ravel()
            ]
            for other, column in zip(leaves, zip(*rows)):
                blocks = [torch.zeros_like(leaves[other]) if row is None else row for row in column]
                for other_label, block in parts(other, torch.stack(blocks)):
                    found[f"{label},{other_label}"] = numbers(block).reshape(gradient.shape + leaves[other].shape)
    return found


def parts(name: str, x: Any) -> list[tuple[str, Any]]:
    return [(f"real({name})", x.real), (f"imag({name})", x.imag)] if x.is_complex() else [(name, x)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_hessians_are_pytorchs(program):
    given = [f"{name}={text(VALUES[name])}" for name in names(program)]
    printed = json.loads(commands.run(["eval", program, *given, "--order", "2", "--json"]).out)["derivatives"]
    in_python = gradcli.compile(program).hessian({name: VALUES[name] for name in names(program)})
    wanted = hessian_of_pytorch(program)
    for key, found in printed.items():
        np.testing.assert_allclose(np.asarray(found, float), wanted[key], rtol=1e-9, atol=1e-9, err_msg=key)
        np.testing.assert_allclose(in_python[key], wanted[key], rtol=1e-9, atol=1e-9, err_msg=key)


def text(value: Any) -> str:
    return f"[{', '.join(map(text, value))}]" if np.ndim(value) else repr(complex(value)).strip("()").replace("+0j", "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_products_with_the_hessian_are_pytorchs(program):
    tree, own = parse(program), names(program)

    def function(*given):
        return evaluate(tree, dict(zip(own, given))).value

    def theirs(*given):
        return eval(program, THEIRS | dict(zip(own, given)))

    rng = np.random.default_rng(1)
    along = [np.asarray(rng.normal(size=np.shape(VALUES[n]))) * (1 - 0.5j if n != "x" else 1) for n in own]
    primals, directions = (tuple(map(tensor, arrays)) for arrays in ([VALUES[n] for n in own], along))
    others = tuple(torch.tensor(np.asarray(VALUES[n])) for n in own)
    other_directions = tuple(torch.tensor(d, dtype=o.dtype) for d, o in zip(along, others))
    every = tuple(range(len(own)))
    pairs = [
        (
            functional.hvp(function, primals, directions)[1],
            torch.autograd.functional.hvp(theirs, others, other_directions)[1],
        ),
        (
            functional.vhp(function, primals, directions)[1],
            torch.autograd.functional.vhp(theirs, others, other_directions)[1],
        ),
        (
            func.jvp(func.grad(function, every), primals, directions)[1],
            torch.func.jvp(torch.func.grad(theirs, every), others, other_directions)[1],
        ),
        (
            func.vjp(func.grad(function, every), *primals)[1](directions),
            torch.func.vjp(torch.func.grad(theirs, every), *others)[1](other_directions),
        ),
    ]
    for found, wanted in pairs:
        for ours, other in zip(found, wanted):
            np.testing.assert_allclose(numbers(ours), numbers(other), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("of", "number", "absolute"), [(func, tensor(1j), gradcli.abs), (torch.func, torch.tensor(1j), torch.abs)]
)
def test_a_whole_hessian_by_complex_tensors_is_pytorchs_error(of, number, absolute):
    with pytest.raises(RuntimeError, match="jacfwd: Expected all inputs to be real"):
        of.hessian(lambda z: absolute(z) ** 2)(number)
