"""Functions of NumPy and PyTorch with parameters, places and several results, beside PyTorch: values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import gradcli  # noqa: E402
from gradcli import Tensor, grad, tensor  # noqa: E402
from gradcli.primitives import table  # noqa: E402
from tests.primitives.test_special_functions import BESSEL  # noqa: E402

F = torch.nn.functional
DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(2, 4, 5))
CUBE, SQUARE = DRAW.normal(size=(3, 4, 5)), DRAW.normal(size=(4, 4))
SQUARES, PRODUCTS = DRAW.normal(size=(3, 4, 4)), DRAW.normal(size=(3, 5, 4))
POSITIVE = np.abs(Y) + 0.1
SHARES = POSITIVE / POSITIVE.sum(1, keepdims=True)
SCORES, PER_PIXEL, CLASSES = DRAW.normal(size=(2, 3, 4)), DRAW.integers(0, 3, (2, 4)), DRAW.uniform(0.5, 2.0, 5)
LABELS, PLACES, ROWS = np.array([0, 3, -100, 2]), DRAW.integers(0, 5, (4, 3)), DRAW.integers(0, 4, (2, 5))
LABEL_LISTS = np.array([[2, 0, -1, 1, 1], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 4], [4, -1, -1, -1, -1]])
UNPOOLED = np.tile([[0, 3], [9, 14]], (2, 3, 1, 1))
ONCE = np.argsort(DRAW.random((4, 5)), 1)[:, :3]
MASK = X > 0
# A query that sees no key is one of them.
SEEN = np.triu(np.ones((4, 4)), 1) > 0
IMAGES = DRAW.normal(size=(2, 3, 4, 5))
TRIANGLE = np.tril(SQUARE) + 4 * np.eye(4)


class Case(NamedTuple):
    """A function called with operands, and the rest as keywords, in both libraries."""

    name: str
    theirs: Callable[..., Any]
    operands: tuple[Any, ...]
    params: Mapping[str, Any] = MappingProxyType({})
    # Where ours has other keywords.
    own: dict[str, Any] | None = None


def _there(value: Any) -> Any:
    return torch.as_tensor(value) if isinstance(value, np.ndarray) else value


def _vectors(svd: Callable[..., Any]) -> Callable[..., Any]:
    """What does not depend on the signs of singular vectors."""

    def function(a: Any) -> Any:
        u, s, v = svd(a, full_matrices=False)
        return u**2, s, v**2, u @ v

    return function


REDUCTIONS = ("mean", "sum", "none")
CASES = [
    *(
        Case(name, getattr(F, name), (X, target), {"reduction": reduction, "weight": weight, **more})
        for reduction in REDUCTIONS
        for weight in (None, CLASSES)
        for name, target, more in (
            ("nll_loss", LABELS, {}),
            ("cross_entropy", LABELS, {"label_smoothing": 0.1}),
            ("cross_entropy", LABELS, {}),
            ("cross_entropy", SHARES, {"label_smoothing": 0.1}),
        )
    ),
    Case("cross_entropy", F.cross_entropy, (SCORES, PER_PIXEL), {"label_smoothing": 0.2}),
    *(
        Case(name, getattr(F, name), operands, {"reduction": reduction, **more})
        for reduction in REDUCTIONS
        for name, operands, more in (
            ("mse_loss", (X, Y), {}),
            ("l1_loss", (X, Y), {}),
            ("smooth_l1_loss", (X, Y), {"beta": 0.3}),
            ("huber_loss", (X, Y), {"delta": 0.3}),
            ("binary_cross_entropy", (SHARES, SHARES[:, ::-1].copy()), {"weight": CLASSES}),
            ("binary_cross_entropy_with_logits", (X, SHARES), {"weight": CLASSES, "pos_weight": CLASSES[::-1].copy()}),
            ("gaussian_nll_loss", (X, Y, POSITIVE), {"full": True}),
            ("poisson_nll_loss", (X, 3 * POSITIVE), {"full": True}),
            ("poisson_nll_loss", (POSITIVE, 3 * POSITIVE), {"log_input": False}),
        )
    ),
    Case("topk", torch.topk, (X,), {"k": 2}),
    Case("topk", torch.topk, (X,), {"k": 2, "dim": 0, "largest": False}),
    *(Case(name, getattr(torch, name), (x,), {"dim": dim}) for name in ("cummax", "cummin") for x in (X, X.round()) for dim in (0, 1)),
    Case("argsort", torch.argsort, (X.round(),), {"dim": 1, "descending": True, "stable": True}),
    Case("quantile", lambda x, q, dim: torch.quantile(x, q, dim), (X,), {"q": np.array([0.1, 0.5, 1.0]), "dim": 1}),
    Case("logcumsumexp", torch.logcumsumexp, (100 * X,), {"dim": 1}),
    Case("trapezoid", torch.trapezoid, (X, np.cumsum(POSITIVE, 1))),
    Case("gather", torch.gather, (X,), {"dim": 1, "index": PLACES}),
    Case("gather", torch.gather, (X,), {"dim": 0, "index": ROWS}),
    Case("scatter_add", lambda x, src, **at: torch.scatter_add(x, src=src, **at), (X,), {"dim": 1, "index": PLACES, "src": Y[:, :3]}),
    Case("scatter", torch.scatter, (X,), {"dim": 1, "index": ONCE, "src": Y[:, :3]}),
    Case("take_along_dim", torch.take_along_dim, (X,), {"indices": PLACES, "dim": 1}),
    Case("take_along_dim", torch.take_along_dim, (X,), {"indices": PLACES[:1], "dim": 1}),
    Case("split", lambda x: torch.tensor_split(x, (1, 3), 1), (X,), own={"indices_or_sections": [1, 3], "axis": 1}),
    *(Case("chunk", torch.chunk, (X,), {"chunks": n, "dim": 1}) for n in range(1, 8)),
    Case("unbind", torch.unbind, (X,), {"dim": 1}),
    *(Case("meshgrid", torch.meshgrid, (X[0], Y[:, 0]), {"indexing": order}) for order in ("xy", "ij")),
    Case("index_select", torch.index_select, (X,), {"dim": 1, "index": np.array([0, 0, 3])}),
    Case("index_add", torch.index_add, (X,), {"dim": 0, "index": np.array([0, 0, 3]), "source": Y[:3], "alpha": 2.0}),
    Case("masked_fill", torch.masked_fill, (X,), {"mask": MASK, "value": 2.0}),
    Case("masked_select", torch.masked_select, (X,), {"mask": MASK}),
    Case("unflatten", torch.unflatten, (X,), {"dim": 0, "sizes": (2, -1)}),
    *(Case("diag_embed", torch.diag_embed, (X,), {"offset": k}) for k in (-2, 0, 1)),
    Case("diag_embed", torch.diag_embed, (X,), {"offset": 1, "dim1": 0, "dim2": 2}),
    *(Case("rot90", torch.rot90, (CUBE,), {"k": k, "dims": [0, 2]}) for k in range(-2, 5)),
    Case("unfold", lambda x: x.unfold(1, 3, 2), (CUBE,), own={"axis": 1, "size": 3, "step": 2}),
    Case("linear", F.linear, (CUBE, X, X[:, 0])),
    *(Case("normalize", F.normalize, (CUBE,), params) for params in ({}, {"p": 1.0, "dim": -1})),
    *(Case("cosine_similarity", F.cosine_similarity, (X, Y), params) for params in ({}, {"dim": 0})),
    Case("cosine_similarity", F.cosine_similarity, (X, np.zeros((4, 5)))),
    *(Case("pairwise_distance", F.pairwise_distance, (X, Y), params) for params in ({}, {"p": 1.0, "keepdim": True})),
    Case("layer_norm", F.layer_norm, (CUBE,), {"normalized_shape": (4, 5)}),
    Case("layer_norm", lambda x, sizes, *rest, **params: F.layer_norm(x, sizes.tolist(), *rest, **params), (CUBE, np.array([5]), X[0], X[1]), {"eps": 0.1}),
    Case("rms_norm", F.rms_norm, (CUBE,), {"normalized_shape": (5,)}),
    *(Case("glu", F.glu, (SQUARES,), params) for params in ({}, {"dim": 1})),
    Case("embedding", F.embedding, (PLACES[:, :2], Y.repeat(2, 0))),
    *(
        Case("scaled_dot_product_attention", F.scaled_dot_product_attention, (SQUARES, SQUARES[::-1].copy(), CUBE), params)
        for params in ({}, {"is_causal": True, "scale": 0.3}, {"attn_mask": SQUARE}, {"attn_mask": SEEN})
    ),
    *(
        Case("conv1d", F.conv1d, operands, params)
        for operands, params in (
            ((CUBE, SQUARES), {}),
            ((CUBE[0], SQUARES, X[0, :3]), {"stride": 2, "padding": (3,)}),
            ((CUBE, PRODUCTS[:2, :2, :3], X[0, :2]), {"groups": 2, "padding": "same"}),
            ((CUBE, SQUARES[:, :, :2]), {"dilation": 2, "padding": "same"}),
        )
    ),
    *(
        Case("conv2d", F.conv2d, operands, params)
        for operands, params in (
            ((CUBE, CUBE[None, :, :2, :3]), {}),
            ((IMAGES, IMAGES[:, :, :2, :3], X[0, :2]), {"stride": (2, 1), "padding": (1, 2)}),
            ((IMAGES, IMAGES[:, :1, :3, :2].repeat(3, 0)), {"groups": 3, "dilation": (1, 2)}),
            ((IMAGES, IMAGES[:1, :, :3, :3]), {"padding": "same"}),
        )
    ),
    *(
        Case(name, getattr(F, name), (IMAGES if name.endswith("2d") else CUBE,), params)
        for name in ("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d")
        for params in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1})
    ),
    Case("avg_pool2d", F.avg_pool2d, (CUBE,), {"kernel_size": (2, 3), "stride": (1, 2)}),
    *(
        Case(f"adaptive_max_pool{axes}d", getattr(F, f"adaptive_max_pool{axes}d"), (x,), {"output_size": size})
        for axes, x in ((1, CUBE), (2, IMAGES), (3, IMAGES))
        for size in (2, 3, 7)
    ),
    Case("adaptive_max_pool2d", F.adaptive_max_pool2d, (IMAGES,), {"output_size": (3, None), "return_indices": True}),
    *(
        Case(f"lp_pool{axes}d", getattr(F, f"lp_pool{axes}d"), (np.abs(x),), {"norm_type": 3.0, "kernel_size": 2, **more})
        for axes, x in ((1, CUBE), (2, IMAGES), (3, IMAGES))
        for more in ({}, {"stride": 1}, {"ceil_mode": True})
    ),
    Case("max_unpool2d", F.max_unpool2d, (IMAGES[:, :, :2, :2],), {"indices": UNPOOLED, "kernel_size": 2}),
    Case("max_unpool2d", F.max_unpool2d, (IMAGES[:, :, :2, :2],), {"indices": UNPOOLED, "kernel_size": 2, "output_size": (5, 5)}),
    *(
        Case("multilabel_margin_loss", F.multilabel_margin_loss, (X,), {"target": LABEL_LISTS, "reduction": reduction})
        for reduction in REDUCTIONS
    ),
    Case("baddbmm", torch.baddbmm, (SQUARES, CUBE, PRODUCTS), {"beta": 0.5, "alpha": 2.0}),
    *(Case("cdist", torch.cdist, (X, Y[:3]), {"p": p}) for p in (1.0, 2.0, 3.0, math.inf)),
    *(Case("slogdet", torch.linalg.slogdet, (a,)) for a in (SQUARE, SQUARES)),
    *(
        Case("solve_triangular", torch.linalg.solve_triangular, (SQUARE, X if left else X.T), {"upper": upper, "left": left, "unitriangular": unit})
        for upper in (True, False)
        for left in (True, False)
        for unit in (True, False)
    ),
    Case("cholesky_solve", lambda b, root: torch.cholesky_solve(b, root.tril()), (X, TRIANGLE)),
    Case("cholesky_solve", lambda b, root: torch.cholesky_solve(b, root.triu(), True), (X, TRIANGLE.T), own={"upper": True}),
    *(Case("svd", _vectors(torch.linalg.svd), (a,), own={}) for a in (SQUARE, X, X.T, PRODUCTS)),
    Case("multi_dot", lambda *factors: torch.linalg.multi_dot(factors), (X, X.T, SQUARE)),
    *(
        Case("matrix_norm", torch.linalg.matrix_norm, (CUBE,), {"ord": order, **more})
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
        for more in ({}, {"dim": (0, 2), "keepdim": True})
    ),
]  # fmt: skip


def _ours(case: Case) -> Callable[..., Any]:
    function = table.known(case.name)
    if case.name == "svd":
        return _vectors(function)
    if case.name == "multi_dot":
        return lambda *factors: function(list(factors))
    params = case.params if case.own is None else case.own
    return lambda *operands: function(*operands, **params)


def _gradients(parts: Any, leaves: Any, differentiate: Callable[..., Any], weigh: Callable[..., Any]) -> list[Any]:
    total = sum((part * weigh(i, part.shape)).sum() for i, part in enumerate(parts) if part.requires_grad)
    if isinstance(total, int):
        return []
    return [
        np.zeros(leaf.shape) if g is None else np.asarray(g.detach())
        for g, leaf in zip(differentiate(total, leaves), leaves)
    ]


def _weights(i: int, shape: Any) -> Any:
    return np.random.default_rng(i).uniform(0.5, 1.5, tuple(shape))


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.cases(80)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{i}-{case.name}") for i, case in enumerate(CASES)])
def test_a_function_is_that_of_pytorch(case: Case) -> None:
    whole = [np.asarray(o).dtype.kind != "f" for o in case.operands]
    given = [o if w else tensor(o, requires_grad=True) for o, w in zip(case.operands, whole)]
    leaves = [torch.as_tensor(o) if w else torch.tensor(o, requires_grad=True) for o, w in zip(case.operands, whole)]
    found = _parts(_ours(case)(*given))
    expected = _parts(case.theirs(*leaves, **{name: _there(value) for name, value in case.params.items()}))
    for part, wanted in zip(found, expected, strict=True):
        numbers = np.asarray(part.detach() if isinstance(part, Tensor) else part)
        assert numbers.shape == tuple(wanted.shape)
        np.testing.assert_allclose(numbers, wanted.detach().numpy(), rtol=1e-9, atol=1e-11)
    ours = _gradients(
        [p for p in found if isinstance(p, Tensor)], [g for g in given if isinstance(g, Tensor)],
        lambda total, by: grad(total, by, allow_unused=True), _weights,
    )  # fmt: skip
    theirs = _gradients(
        [p for p in expected if p.is_floating_point()], [x for x in leaves if x.requires_grad],
        lambda total, by: torch.autograd.grad(total, by, allow_unused=True),
        lambda i, shape: torch.as_tensor(_weights(i, shape)),
    )  # fmt: skip
    assert len(ours) == len(theirs)
    for gradient, wanted in zip(ours, theirs):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (1, 3), (6, 2)])
def test_a_convolution_is_that_of_numpy(mode: str, sizes: tuple[int, int]) -> None:
    a, v = (DRAW.normal(size=size) for size in sizes)
    np.testing.assert_allclose(table.known("convolve")(a, v, mode), np.convolve(a, v, mode), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 0.77, 1.0])
def test_a_quantile_is_that_of_numpy(method: str, q: float) -> None:
    found = table.known("quantile")(X, q, 0, method=method)
    np.testing.assert_allclose(found, np.quantile(X, q, 0, method=method), rtol=1e-14)


def test_interpolation_is_that_of_numpy() -> None:
    places, heights = np.sort(X[0]), Y[0]
    points = np.concatenate([np.linspace(-4, 4, 41), places, [np.nan]])
    np.testing.assert_allclose(
        table.known("interp")(points, places, heights), np.interp(points, places, heights), rtol=1e-12
    )


@pytest.mark.parametrize("places", [[3, 1], [-2, 7], [0, 5, 5], 5])
def test_parts_are_those_of_numpy(places: Any) -> None:
    for found, expected in zip(table.known("split")(X, places, 1), np.split(X, places, 1), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_bessel_functions_of_tensors_have_their_digits_far_out():
    for program, x, value, slope in BESSEL[:2] + BESSEL[8:9]:
        leaf = {"x": torch.tensor([0.5, x], dtype=torch.float64)}
        found, by = gradcli.compile(program).value_and_grad(leaf, grad_output=torch.ones(2, dtype=torch.float64))
        assert [float(found[1]), float(by["x"][1])] == pytest.approx([value, slope], rel=2e-13)


TOLERANCES = [
    {}, {"tol": 0.5}, {"atol": 0.5}, {"rtol": 0.5}, {"atol": 3.0, "rtol": 0.1}, {"atol": 0.0}, {"atol": 0.1, "rtol": 0.6},
    {"hermitian": True}, {"hermitian": True, "atol": 2.0},
]  # fmt: skip


@pytest.mark.parametrize("tolerances", TOLERANCES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_rank_of_a_matrix(tolerances, dtype):
    random = np.random.default_rng(5)
    tall, wide = random.normal(size=(4, 2)), random.normal(size=(2, 4))
    stack = np.array([tall @ wide, np.diag([3.0, 1.0, 0.4, 0.0]), np.diag([1.0, 1.0, 1e-9, 1e-12]), np.zeros((4, 4))])
    found = gradcli.linalg.matrix_rank(gradcli.tensor(stack, dtype=dtype), **tolerances)
    expected = torch.linalg.matrix_rank(torch.tensor(stack, dtype=getattr(torch, dtype)), **tolerances)
    assert found.tolist() == expected.tolist()
    assert found.dtype == "int64"


def test_the_rank_of_a_matrix_by_tolerances_of_numpy():
    matrix = np.array([[1.0, 2.0], [2.0, 4.0]])
    for arguments in ({}, {"tol": 0.0}, {"tol": 6.0}, {"rtol": 0.5}, {"hermitian": True}):
        assert gradcli.linalg.matrix_rank(matrix, **arguments) == np.linalg.matrix_rank(matrix, **arguments)


@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 3), (5, 5), (6, 3), (3, 6), (4, 1), (1, 4), (2, 2, 4, 4), (0, 0), (3, 0)]
)
@pytest.mark.parametrize("of_complex", [False, True])
def test_the_lu_factors_of_a_matrix(shape, of_complex):
    real, imaginary = np.random.default_rng(7).normal(size=(2, *shape))
    matrix = real + 1j * imaginary if of_complex else real
    slopes: list[Any] = []
    parts: list[list[Any]] = []
    for library in (gradcli, torch):
        x = library.tensor(matrix, requires_grad=True)
        both, pivots = library.linalg.lu_factor(x)
        permutation, lower, upper = library.linalg.lu(x)
        parts.append([both, pivots, permutation, lower, upper])
        total = (abs(both) ** 2).cumsum(-1).sum() + (abs(lower) ** 2).sum() * (abs(upper) ** 2).sum()
        (slope,) = library.autograd.grad(total, x, create_graph=True)
        (second,) = library.autograd.grad((abs(slope) ** 2).sum(), x)
        slopes += [slope.detach().numpy(), second.numpy()]
    for own, other in zip(*parts):
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-12)
    for found, expected in zip(slopes[:2], slopes[2:]):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * np.max(abs(expected), initial=1.0))


def test_lu_factors_solve():
    matrix, right = np.random.default_rng(2).normal(size=(4, 4)), np.arange(8.0).reshape(4, 2)
    found = gradcli.linalg.lu_solve(*gradcli.linalg.lu_factor(tensor(matrix)), tensor(right))
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(matrix, right), rtol=1e-10)


WEAK = np.random.default_rng(3).integers(-3, 4, (6, 2)) @ np.random.default_rng(4).integers(-3, 4, (2, 6)).astype(float)
SINGULAR = [
    [[1.0, 2.0], [2.0, 4.0]],
    [[0.0, 1.0], [0.0, 3.0]],
    [[2.0, 4.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]],
    np.zeros((3, 3)).tolist(),
    np.zeros((2, 1)).tolist(),
    [[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]],
    [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]]],
]


@pytest.mark.parametrize("matrix", SINGULAR)
def test_a_singular_matrix_has_the_lu_factors_of_pytorch(matrix):
    for own, other in zip(
        gradcli.linalg.lu(tensor(matrix)), torch.linalg.lu(torch.tensor(matrix, dtype=torch.float64))
    ):
        np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-14, atol=1e-15)


def test_the_lu_factors_of_a_matrix_of_low_rank_multiply_to_it():
    permutation, lower, upper = gradcli.linalg.lu(tensor(WEAK))
    np.testing.assert_allclose((permutation @ lower @ upper).numpy(), WEAK, atol=1e-13)


def test_functions_of_linalg_have_the_arguments_of_pytorch():
    x = [1.0, 2.0, 3.0]
    assert gradcli.linalg.vander(tensor(x)).tolist() == torch.linalg.vander(torch.tensor(x)).tolist()
    cube = CUBE[:, :, :4].tolist()
    for name, params in (("diagonal", {}), ("diagonal", {"offset": 1}), ("cholesky", {"upper": True})):
        given = (SQUARE @ SQUARE.T + 4 * np.eye(4)).tolist() if name == "cholesky" else cube
        found = getattr(gradcli.linalg, name)(tensor(given), **params)
        expected = getattr(torch.linalg, name)(torch.tensor(given, dtype=torch.float64), **params)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_inputs_of_grad_may_be_the_values_of_a_dict():
    parameters = {"a": tensor(2.0, requires_grad=True), "b": tensor(3.0, requires_grad=True)}
    found = gradcli.autograd.grad(parameters["a"] ** 2 * parameters["b"], parameters.values())
    assert [slope.item() for slope in found] == [12.0, 4.0]


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (1, 1)])
def test_a_matrix_with_nan_has_no_eigenvalues(place):
    """They were -sqrt(2) and sqrt(2): LAPACK has them."""
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    matrix[place] = math.nan
    values, vectors = gradcli.eigh(matrix)
    assert all(torch.isnan(found).all() for found in (values, vectors, gradcli.eigvalsh(matrix)))
    assert torch.isnan(gradcli.slogdet(matrix)[0])
