"""Calls as PyTorch's programs make them give tensors with PyTorch's numbers, shapes and dtypes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.usefixtures("float64")


def both(code):
    """What an expression gives here and in PyTorch."""
    found = []
    for library in (gradcli, torch):
        names = {"torch": library, "F": library.nn.functional, "t": library.tensor, "inf": math.inf, "nan": math.nan}
        names |= {"x": names["t"]([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]), "i": names["t"]([[3, 1, 2], [6, 5, 4]])}
        names |= {"n": names["t"]([1.0, math.nan, math.inf, -math.inf, -0.0]), "w": names["t"]([3, 1, 2, 1])}
        names |= {"v": names["t"]([3.0, 1.0, 2.0, 1.0]), "b": names["t"]([True, False, True])}
        names |= {"S": names["t"]([[4.0, 1.0], [1.0, 3.0]]), "L": names["t"]([[2.0, 0.0], [0.5, 1.5]])}
        found.append(eval(code, names))
    return found


def assert_alike(found, expected):
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, gradcli.Tensor)
        assert f"torch.{found.dtype}" == str(expected.dtype)
        assert found.shape == tuple(expected.shape)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-9, 1e-12)
    elif isinstance(expected, (tuple, list)) and not isinstance(expected, torch.Size):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_alike(one, other)
    else:
        assert str(found).removeprefix("gradcli.") == str(expected).removeprefix("torch.")


CALLS = [
    "torch.cummax(x, 1)", "x.cummin(dim=0)", "torch.mean(i, dtype=torch.float64)", "x.mean(1, dtype=torch.float32)",
    "torch.float_power(i, 2)", "torch.float_power(2, i)", "torch.isposinf(n)", "torch.isneginf(n)", "torch.signbit(n)",
    "n.signbit()", "torch.logical_xor(b, ~b[[0, 0, 1]])", "torch.logical_xor(x, i - 3)", "torch.ldexp(v, w)",
    "torch.gcd(w, t(6))", "torch.lcm(w, t([4, 6, 8, 9]))", "torch.gcd(t([-4, 0]), t([6, 0]))",
    "torch.unravel_index(w, (2, 2))", "torch.mode(w)", "torch.mode(i, 1)", "torch.mode(x, 0, True)", "torch.mode(t(2.0))",
    "torch.mode(t([[1, 2, 2], [3, 3, 1]]), dim=-1)", "torch.renorm(x, 2, 0, 2.0)", "x.renorm(p=1, dim=1, maxnorm=2.5)",
    "torch.cholesky_inverse(L)", "torch.cholesky_inverse(L.T, upper=True)", "torch.gradient(v)", "torch.gradient(x, dim=1)",
    "torch.gradient(v, spacing=2.0)", "torch.gradient(x, spacing=(t([0.0, 1.0]), t([0.0, 1.0, 3.0])))",
    "torch.gradient(x[0], edge_order=2)", "torch.gradient(v, spacing=(v.cumsum(0),))[0]", "torch.kaiser_window(5)",
    "torch.kaiser_window(6, False, 8.0)", "torch.special.chebyshev_polynomial_t(x, 3)",
    "torch.special.chebyshev_polynomial_u(x, 2)", "torch.special.hermite_polynomial_h(v, 3)",
    "torch.special.hermite_polynomial_he(v, 3)", "torch.special.laguerre_polynomial_l(v, 2)",
    "torch.special.legendre_polynomial_p(v, n=2)", "torch.special.spherical_bessel_j0(v)", "torch.scalar_tensor(2)",
    "torch.is_nonzero(t(0.5))", "torch.is_nonzero(t([False]))", "torch.broadcast_shapes((2, 1), (3,))",
    "x.itemsize", "i.int().element_size()", "x.nbytes", "torch.dropout(x, 0.0, True)", "torch.rrelu(x)",
    "torch.heaviside(input=x, values=t(0.5))", "torch.lerp(t([inf, 1.0]), t([0.0, inf]), 0.5)",
    "torch.lerp(x, x + 1, t(0.75))", "x.lerp(x + 1, 0.3)",
]  # fmt: skip


@pytest.mark.parametrize("code", CALLS)
def test_a_call(code):
    assert_alike(*both(code))


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
PAIRS = [*itertools.product(DTYPES, DTYPES)]


def test_dtypes_of_two_are_those_of_pytorch():
    for one, other in PAIRS:
        pair = getattr(torch, one), getattr(torch, other)
        assert gradcli.can_cast(one, other) == torch.can_cast(*pair)
        expected = str(torch.promote_types(*pair))
        # NumPy has no complex numbers in half precision.
        if expected != "torch.complex32":
            assert f"torch.{gradcli.promote_types(one, other)}" == expected


@pytest.mark.parametrize("shapes", [*itertools.product([(), (2,)], repeat=2)])
def test_dtypes_of_results_are_those_of_pytorch(shapes):
    for pair in PAIRS:
        found, expected = (
            library.result_type(*(library.ones(shape, dtype=getattr(library, d)) for shape, d in zip(shapes, pair)))
            for library in (gradcli, torch)
        )
        if str(expected) != "torch.complex32":
            assert f"torch.{found}" == str(expected), pair
    for dtype, number in itertools.product(DTYPES, [True, 1, 1.5]):
        found, expected = (
            library.result_type(library.ones(shapes[0], dtype=getattr(library, dtype)), number)
            for library in (gradcli, torch)
        )
        assert f"torch.{found}" == str(expected), (dtype, number)


def test_the_gradient_goes_to_the_most_frequent_element():
    for library in (gradcli, torch):
        x = library.tensor([2.0, 1.0, 2.0, 1.0, 3.0], requires_grad=True)
        values, index = library.mode(x)
        values.backward()
        assert (values.item(), index.item(), x.grad.tolist()) == (1.0, 3, [0.0, 0.0, 0.0, 1.0, 0.0])
