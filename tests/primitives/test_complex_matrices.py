"""Tests decompositions and equations of complex matrices, and eigenvalues of general ones: values are NumPy's, and
derivatives those of differences along the real and the imaginary axis."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import gradcli
from gradcli import abs, conj, func, sin, tensor
from gradcli.errors import DifferentiationError
from gradcli.numpy import linalg
from tests.complex_checks import check_gradients

RANDOM = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)


def adjoint(x):
    return conj(x.swapaxes(-1, -2))


SQUARE, OTHER, TALL, WIDE = random(3, 3), random(3, 2), random(4, 3), random(3, 4)
HERMITIAN = SQUARE @ SQUARE.conj().T + np.eye(3)
REAL = np.array([[1.0, 2.0, 0.5], [-2.0, 0.3, 1.0], [0.1, 0.4, -1.0]])


def rebuilt(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return (u * sin(s)[..., None, :]) @ vh


def function_of_hermitian(x):
    w, v = linalg.eigh(x)
    return (v * sin(w)[..., None, :]) @ adjoint(v)


def function_of_matrix(x):
    w, v = linalg.eig(x)
    return (v * sin(w)[..., None, :]) @ linalg.inv(v)


# Functions with a holomorphic rule, and those whose rule is none, at a matrix.
FUNCTIONS = {
    "cholesky": (linalg.cholesky, HERMITIAN),
    "eigvalsh": (linalg.eigvalsh, HERMITIAN),
    "eigh": (lambda x: abs(linalg.eigh(x)[1]), HERMITIAN),
    "eigh upper": (lambda x: abs(linalg.eigh(x, "U")[1]), SQUARE),
    "of hermitian": (function_of_hermitian, HERMITIAN),
    "q": (lambda x: linalg.qr(x)[0], TALL),
    "q square": (lambda x: linalg.qr(x)[0], SQUARE),
    "r": (lambda x: linalg.qr(x)[1], TALL),
    "r wide": (lambda x: linalg.qr(x)[1], WIDE),
    "svdvals": (linalg.svdvals, TALL),
    "u": (lambda x: abs(linalg.svd(x, full_matrices=False)[0]), TALL),
    "s": (lambda x: linalg.svd(x, full_matrices=False)[1], WIDE),
    "vh": (lambda x: abs(linalg.svd(x, full_matrices=False)[2]), WIDE),
    "usv": (rebuilt, TALL),
    "usv wide": (rebuilt, WIDE),
    "pinv": (linalg.pinv, TALL),
    "inv": (linalg.inv, SQUARE),
    "det": (linalg.det, SQUARE),
    "logdet": (gradcli.logdet, SQUARE),
    "phase of det": (lambda x: linalg.slogdet(x)[0] + 0.3, SQUARE),
    "size of det": (lambda x: linalg.slogdet(x)[1], SQUARE),
    "expm": (gradcli.matrix_exp, SQUARE),
    "sqrtm": (gradcli.sqrtm, SQUARE),
    "logm": (gradcli.logm, SQUARE),
    "logm of real": (gradcli.logm, HERMITIAN.real),
    "solve": (lambda x: linalg.solve(x, tensor(OTHER)), SQUARE),
    "lstsq": (lambda x: linalg.lstsq(x, x[:, :1] ** 2)[0], TALL),
    "norm": (linalg.norm, TALL),
    "nuclear norm": (lambda x: linalg.norm(x, "nuc"), WIDE),
    "spectral norm": (lambda x: linalg.norm(x, 2), WIDE),
    "column norm": (lambda x: linalg.norm(x, 1), WIDE),
    "vector norm": (lambda x: linalg.vector_norm(x, 3.0, 0), TALL),
    "cond": (linalg.cond, SQUARE),
    "vdot": (lambda x: gradcli.vdot(x[0], x[1] ** 2), TALL),
    "eigvals": (linalg.eigvals, SQUARE),
    "eigvals of real": (linalg.eigvals, REAL),
    "eig": (lambda x: abs(linalg.eig(x)[1]), SQUARE),
    "eig of real": (lambda x: abs(linalg.eig(x)[1]), REAL),
    "of matrix": (function_of_matrix, SQUARE),
}


def curved(y):
    return (abs(y - 0.3) ** 3).sum()


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_differences(name):
    function, x = FUNCTIONS[name]
    check_gradients(lambda z: curved(function(z)), x, 3e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_those_of_differences(name):
    function, x = FUNCTIONS[name]
    v, step = np.roll(x, 1), 1e-6
    _, found = func.jvp(function, (tensor(x),), (tensor(v),))
    after, before = (np.asarray(function(tensor(x + sign * step * v))) for sign in (1, -1))
    np.testing.assert_allclose(found, (after - before) / (2 * step), rtol=1e-5, atol=1e-7)

    def along(z):
        return func.jvp(function, (z,), (tensor(v),))[1]

    after, before = (np.asarray(along(tensor(x + sign * step * v))) for sign in (1, -1))
    np.testing.assert_allclose(
        func.jvp(along, (tensor(x),), (tensor(v),))[1], (after - before) / (2 * step), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches(name):
    function, x = FUNCTIONS[name]
    both = tensor(np.stack([x, 1.5 * x]))
    gradients = func.vmap(func.grad(lambda z: curved(function(z))))(both)
    for row, gradient in zip(both, gradients):
        np.testing.assert_allclose(gradient, func.grad(lambda z: curved(function(z)))(row), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "svdvals", "pinv", "inv", "det", "slogdet", "eigvals", "eig"])
def test_values_are_numpys(name):
    for x in (HERMITIAN, np.stack([HERMITIAN, HERMITIAN.T])):
        found, wanted = getattr(linalg, name)(tensor(x)), getattr(np.linalg, name)(x)
        for one, other in zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_exponentials_have_the_digits_of_real_ones():
    np.testing.assert_allclose(gradcli.matrix_exp(tensor(SQUARE)), scipy.linalg.expm(SQUARE), rtol=1e-13)
    np.testing.assert_allclose(gradcli.matrix_exp(tensor(np.diag([1j, 700.0 + 0j]))), np.diag(np.exp([1j, 700])))


def test_square_roots_and_logarithms():
    root = np.asarray(gradcli.sqrtm(tensor(np.stack([SQUARE, HERMITIAN]))))
    np.testing.assert_allclose(root @ root, [SQUARE, HERMITIAN], atol=1e-13)
    np.testing.assert_allclose(scipy.linalg.expm(np.asarray(gradcli.logm(tensor(SQUARE)))), SQUARE, atol=1e-13)
    for function in (gradcli.sqrtm, gradcli.logm):
        assert function(tensor(REAL @ REAL.T)).dtype == "float64"
        assert np.isnan(function(tensor(-np.eye(2)))).all()
        assert np.isfinite(function(tensor(-np.eye(2) + 0j))).all()
    assert np.isnan(gradcli.sqrtm(tensor([[0.0, 1.0], [0.0, 0.0]]))).all()
    assert np.isnan(gradcli.logm(tensor([[1.0, 1.0], [1.0, 1.0]]))).all()


def test_triangular_systems():
    lower, right = np.tril(SQUARE), tensor(OTHER)
    for trans, matrix in (("N", lower), ("T", lower.T), ("C", lower.conj().T), (1, lower.T), (2, lower.conj().T)):
        found = gradcli.solve_triangular(tensor(SQUARE), right, trans, lower=True)
        np.testing.assert_allclose(matrix @ np.asarray(found), OTHER, atol=1e-12)
    factor = gradcli.cholesky(tensor(HERMITIAN))
    np.testing.assert_allclose(gradcli.cholesky_solve(right, factor), np.linalg.solve(HERMITIAN, OTHER), atol=1e-12)


def test_products_that_conjugate():
    a, b = random(2, 3), random(2, 3)
    np.testing.assert_allclose(gradcli.vdot(tensor(a), tensor(b)), np.vdot(a, b))
    np.testing.assert_allclose(linalg.vecdot(tensor(a), tensor(b)), np.linalg.vecdot(a, b))
    np.testing.assert_allclose(gradcli.inner(tensor(a), tensor(b)), np.inner(a, b))


@pytest.mark.parametrize("vdot", ["vdot", "np.vdot", "torch.vdot", "jnp.vdot"])
def test_vdot_conjugates_its_first_vector_in_every_library(run, vdot):
    assert run("eval", f"{vdot}(z, w)", "z=[1+2j, 3]", "w=[1j, 2]", "--no-grad").out == "value  8.0+1.0j\n"


def test_eigenvalues_of_a_real_matrix_are_complex():
    x = tensor(REAL, requires_grad=True)
    w, v = linalg.eig(x)
    np.testing.assert_allclose(w.detach(), np.linalg.eigvals(REAL))
    assert (w.dtype, v.dtype) == ("complex128", "complex128")
    assert linalg.eigvals(tensor(np.eye(2))).dtype == "complex128"
    abs(w).sum().backward()
    assert x.grad.dtype == "float64"


@pytest.mark.parametrize(
    ("vectors", "x"),
    [
        (lambda x: linalg.eig(x)[1], SQUARE),
        (lambda x: linalg.eigh(x)[1], HERMITIAN),
        (lambda x: linalg.svd(x)[0], SQUARE),
        (lambda x: linalg.svd(x)[2], SQUARE),
    ],
)
def test_a_loss_that_depends_on_phases_is_an_error(vectors, x):
    leaf = tensor(x, requires_grad=True)
    with pytest.raises(DifferentiationError, match="depends on the phases of eigenvectors or singular vectors"):
        gradcli.real(vectors(leaf)).sum().backward()


def test_the_phases_of_left_and_right_singular_vectors_cancel():
    def unitary(z):
        u, _, vh = linalg.svd(z)
        return u @ vh

    check_gradients(lambda z: curved(unitary(z)), SQUARE, 3e-5)


def test_a_program(run):
    done = run("eval", "w, v = eig(A); sum(abs(w)) + abs(v[0, 0])", "A=[[2,0.5],[-1,3]]", "--json")
    values, vectors = np.linalg.eig([[2, 0.5], [-1, 3]])
    assert done.json["value"] == pytest.approx(np.abs(values).sum() + np.abs(vectors[0, 0]))
    done = run("eval", "real(eig(A)[1][0, 0])**2", "A=[[2,0.5],[-1,3]]")
    assert done.status == 1
    assert "depends on the phases" in done.err
    assert (
        "\nhint: what is the same for a vector v and for v*exp(1j*phi), such as abs(v), has a derivative\n" in done.err
    )


def test_equal_eigenvalues_have_a_warning(run):
    assert "'eigvals' is not differentiable here" in run("eval", "sum(abs(eigvals(A)))", "A=[[2,0],[0,2]]").err


def test_losses_and_covariances_are_of_moduli():
    a, b = random(3, 4), random(3, 4)
    size = np.abs(a - b)
    assert float(gradcli.mse_loss(tensor(a), tensor(b))) == pytest.approx((size**2).mean())
    huber = np.where(size < 1, size**2 / 2, size - 0.5).mean()
    assert float(gradcli.smooth_l1_loss(tensor(a), tensor(b))) == pytest.approx(huber)
    assert float(gradcli.huber_loss(tensor(a), tensor(b))) == pytest.approx(huber)
    np.testing.assert_allclose(gradcli.cov(tensor(a)), np.cov(a))
    np.testing.assert_allclose(gradcli.corrcoef(tensor(a)), np.corrcoef(a))
    check_gradients(lambda z: gradcli.mse_loss(z, tensor(b)) + curved(gradcli.cov(z)), a, 3e-5)


TWO_BY_TWO = np.array([[2.0, 0.5 - 0.25j], [0.5 + 0.25j, 1.5]])


@pytest.mark.parametrize("program", ["torch.cholesky(A, upper=True)", "torch.linalg.cholesky(A, upper=True)"])
def test_an_upper_factor_is_the_conjugate_transpose(program):
    upper = gradcli.compile(program)(A=TWO_BY_TWO)
    np.testing.assert_allclose(upper, np.linalg.cholesky(TWO_BY_TWO).conj().T, rtol=1e-14)
    scipys = gradcli.compile("scipy.linalg.cholesky(A)")(A=TWO_BY_TWO)
    np.testing.assert_allclose(scipys, upper, rtol=1e-14)


def test_one_triangle_of_a_hermitian_matrix_is_read():
    for triangle, part in (("U", np.triu), ("L", np.tril)):
        found = gradcli.compile(f"torch.linalg.eigvalsh(A, UPLO='{triangle}')")(A=part(TWO_BY_TWO))
        np.testing.assert_allclose(found, np.linalg.eigvalsh(TWO_BY_TWO), rtol=1e-14)


def test_the_right_vectors_of_torchs_svd():
    matrix = np.array([[1 + 2j, 0.5], [0.25j, -1.0], [0.3, 1j]])
    u, s, v = (gradcli.compile(f"torch.svd(A)[{i}]")(A=matrix) for i in range(3))
    np.testing.assert_allclose(u @ np.diag(s) @ v.conj().T, matrix, atol=1e-14)


def test_resolved_conjugates_are_the_numbers_themselves():
    z = np.array([1 + 2j, 3 - 1j])
    for name in ("resolve_conj", "resolve_neg"):
        np.testing.assert_array_equal(gradcli.compile(f"torch.{name}(z)")(z=z), z)
    np.testing.assert_array_equal(gradcli.compile("torch.conj_physical(z)")(z=z), z.conj())


@pytest.mark.parametrize("size", [1e308, 1e-300])
def test_functions_of_very_large_and_small_matrices(size):
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    root = gradcli.compile("sqrtm(A)")(A=size / 4 * matrix)
    np.testing.assert_allclose(root, scipy.linalg.sqrtm(matrix) * np.sqrt(size / 4), rtol=1e-13)
    logarithm = gradcli.compile("logm(A)")(A=size / 4 * matrix)
    np.testing.assert_allclose(
        logarithm, scipy.linalg.logm(matrix) + np.log(size / 4) * np.eye(2), rtol=1e-13, atol=1e-13
    )
