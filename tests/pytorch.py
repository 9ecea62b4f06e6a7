"""The functions of PyTorch that correspond to those of the table, with the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

# Functions of the table that PyTorch lacks, or that are not compared here.
_BY_TESTS = "tests/backends/test_functions_of_pytorch.py compares it"
MISSING = {
    **dict.fromkeys(
        """
        argsort as_strided avg_pool1d avg_pool2d baddbmm binary_cross_entropy binary_cross_entropy_with_logits bincount cdist cholesky_solve
        chunk conv1d conv2d convolve cosine_similarity cross_entropy cummax cummin diag_embed embedding gather glu gaussian_nll_loss huber_loss index_add
        index_select interp l1_loss layer_norm linear logspace lstsq masked_fill masked_select matrix_norm max_pool1d max_pool2d meshgrid
        mse_loss multi_dot nll_loss nonzero normalize one_hot pad pairwise_distance poisson_nll_loss quantile rms_norm rot90 scaled_dot_product_attention scatter scatter_add
        searchsorted slogdet smooth_l1_loss solve_triangular split svd take_along_axis topk trapezoid unbind
        unflatten unfold vander
        """.split(),  # noqa: SIM905
        _BY_TESTS,
    ),
    **dict.fromkeys(["var_mean", "std_mean"], "they are those of 'var', 'std' and 'mean', which are compared"),
    **dict.fromkeys(
        """
        interpolate upsample_nearest upsample_bilinear adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d
        max_unpool2d max_unpool3d multilabel_margin_loss bucketize scatter_reduce index_reduce renorm cholesky_inverse
        argwhere cartesian_prod take_along_dim clamp_min clamp_max rsub kthvalue aminmax msort cumulative_trapezoid cov corrcoef prelu group_norm batch_norm instance_norm local_response_norm conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d avg_pool3d max_pool3d margin_ranking_loss soft_margin_loss
        hinge_embedding_loss cosine_embedding_loss multi_margin_loss multilabel_soft_margin_loss triplet_margin_loss addmv addr
        addbmm vecdot bilinear dist pdist block_diag tensorsolve tensorinv lu_solve narrow split_with_sizes broadcast_tensors
        expand_as reshape_as dstack diagflat select_scatter slice_scatter diagonal_scatter index_fill index_copy index_put
        masked_scatter pixel_shuffle pixel_unshuffle channel_shuffle
        """.split(),  # noqa: SIM905
        "tests/operators.py compares it",
    ),
    "copy": "clone is the identity, as ours",
    **dict.fromkeys(
        ["array_split", "vsplit", "hsplit", "dsplit", "column_stack", "flipud", "fliplr"], "NumPy compares it"
    ),
    **dict.fromkeys(["atleast_1d", "atleast_2d", "atleast_3d", "allclose"], "NumPy compares it"),
    **dict.fromkeys(["append", "rollaxis", "partition", "solve_sylvester", "solve_banded", "iscomplex"], "it has none"),
    **dict.fromkeys(["imag", "angle", "isreal", "real"], "those of real numbers"),
    **dict.fromkeys(["rgamma", "gammasgn", "yv", "iv", "ive"], "it has none"),
    "vdot": "its vdot takes vectors alone",
    "asarray": "the identity, as ours",
    **dict.fromkeys(["flatten", "swapaxes"], "reshape and transpose, as ours"),
    "size": "a number of no operand",
    "item": "a number without a gradient",
    "ptp": "it has none",
    "average": "it has none",
    "percentile": "it has quantile alone",
    "cbrt": "it has none, and (x)**(1/3) is nan for negative x",
    "gamma": "it has lgamma alone",
    "beta": "it has lgamma alone",
    "betaln": "it has lgamma alone",
    **dict.fromkeys(["sec", "csc", "cot", "sech", "csch", "coth", "sinpi", "cospi", "logcosh"], "it has none"),
    "nextafter": "it has no derivative of it",
    **dict.fromkeys(["factorial", "comb", "perm"], "it has lgamma alone"),
    **dict.fromkeys(["erfcinv", "rel_entr", "norm_pdf", "norm_cdf", "betainc", "lambertw"], "it has none"),
    **dict.fromkeys(["exp1", "expi", "expn", "dawsn", "ellipk", "ellipe", "jv"], "it has none"),
    **dict.fromkeys(["y0", "y1", "k0", "k1", "k0e", "k1e"], "it has no derivative of it"),
    **dict.fromkeys(["gammainc", "gammaincc", "zeta"], "their first operand has no derivative"),
    **dict.fromkeys(
        ["rint", "tri", "geomspace", "digitize", "nanprod", "nanmax", "nanmin", "nanvar", "nanstd"], "it has none"
    ),
    **dict.fromkeys(["median", "nanmedian"], "its median of an even number of elements is the lower one"),
    "rand": "another generator",
    "randn": "another generator",
}
# The second operand of these is a number in PyTorch, without a derivative.
NUMBERS = {"leaky_relu", "elu", "celu", "hardtanh", "softshrink", "hardshrink", "threshold", "nan_to_num"}


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, (list, np.ndarray)) else axis


def _over_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of PyTorch over one or several axes, which must be given explicitly."""

    def reduce(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else _axes(axis)
        return function(x, dim=axes, keepdim=keepdims)

    return reduce


def _over_one_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over at most one axis, applied to each axis in turn."""

    def reduce(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        for a in sorted(range(x.ndim) if axis is None else np.ravel(axis).tolist(), reverse=True):
            x = function(x, dim=a, keepdim=keepdims)
        return x

    return reduce


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None, keepdims=False: function(x, dim=axis, keepdim=keepdims)


def _norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: Any = False) -> Any:
    return torch.linalg.vector_norm(x, float(ord), dim=_axes(axis), keepdim=keepdims)


def _tensor(x: Any) -> torch.Tensor:
    return x if isinstance(x, torch.Tensor) else torch.as_tensor(np.asarray(x))


def _size(shape: tuple[Any, ...]) -> list[int]:
    return np.ravel(shape[0] if len(shape) == 1 else shape).astype(int).tolist()


def _expand(x: Any, *shape: Any) -> Any:
    return torch.broadcast_to(x, _size(shape))


def _transpose(x: Any, *axes: Any) -> Any:
    return torch.transpose(x, *axes) if len(axes) == 2 else x.mT


def _moveaxis(x: Any, source: Any, destination: Any) -> Any:
    return torch.movedim(x, _axes(source), _axes(destination))


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    positions = torch.as_tensor(np.asarray(indices)).long()
    return torch.take(x, positions) if axis is None else torch.index_select(x, axis, positions)


def _repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    return torch.repeat_interleave(x, torch.as_tensor(np.asarray(repeats)), dim=axis)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    return torch.tensordot(a, b, dims=axes if isinstance(axes, int) else [np.ravel(x).tolist() for x in axes])


def _solve(a: Any, b: Any) -> Any:
    # A matrix with a batch of matrices would be read as a batch of vectors.
    columns = b.unsqueeze(-1) if b.ndim == 1 else b
    found = torch.linalg.solve(a, columns.expand(*a.shape[:-2], *columns.shape[-2:]))
    return found.squeeze(-1) if b.ndim == 1 else found


def _symmetric(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function((x + x.mT) / 2)


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two tensors that does not accept numbers."""
    return lambda x, y: function(_tensor(x), _tensor(y))


TWINS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(torch, name)
        for name in [
            "abs",
            "sign",
            "sgn",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "square",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "floor",
            "ceil",
            "trunc",
            "frac",
            "deg2rad",
            "rad2deg",
            "negative",
            "isfinite",
            "isnan",
            "isinf",
            "isposinf",
            "isneginf",
            "signbit",
            "nan_to_num",
            "sigmoid",
            "relu",
            "sinc",
            "erf",
            "erfc",
            "erfinv",
            "lgamma",
            "digamma",
            "i0",
            "polygamma",
            "matrix_exp",
            "matrix_power",
            "trace",
            "outer",
            "kron",
            "einsum",
            "ravel",
            "tril",
            "triu",
            "diag",
            "logdet",
        ]
    },
    **{
        name: _binary(getattr(torch, name))
        for name in [
            "atan2",
            "hypot",
            "maximum",
            "minimum",
            "heaviside",
            "copysign",
            "fmod",
            "remainder",
            "logaddexp",
            "logaddexp2",
            "fmax",
            "fmin",
            "isclose",
            "pow",
            "add",
            "subtract",
            "multiply",
            "divide",
            "floor_divide",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
            "ldexp",
            "xlogy",
            "matmul",
        ]
    },
    "equal": _binary(torch.eq),
    "clip": torch.clip,
    "where": lambda c, x, y: torch.where(_tensor(c), x, y),
    "logsigmoid": F.logsigmoid,
    # By default PyTorch returns x for x > 20.
    "softplus": lambda x: F.softplus(x, threshold=40.0),
    "round": lambda x, decimals=0: torch.round(x, decimals=decimals),
    "logical_not": lambda x: torch.logical_not(_tensor(x)),
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "silu": F.silu,
    **{
        name: getattr(F, name)
        for name in [
            "celu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "mish",
            "relu6",
            "selu",
            "softshrink",
            "softsign",
            "tanhshrink",
            "threshold",
        ]
    },
    "lerp": torch.lerp,
    "addcmul": lambda x, a, b, value=1.0: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1.0: x + value * a / b,
    "softmin": lambda x, axis=-1: F.softmin(x, axis),
    "gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "logit": torch.special.logit,
    "xlog1py": _binary(torch.special.xlog1py),
    "ndtr": torch.special.ndtr,
    "ndtri": torch.special.ndtri,
    "erfcx": torch.special.erfcx,
    "inner": _binary(torch.inner),
    "i0e": torch.special.i0e,
    "i1e": torch.special.i1e,
    "log_ndtr": torch.special.log_ndtr,
    "entr": torch.special.entr,
    "multigammaln": torch.special.multigammaln,
    "i1": torch.special.i1,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "sum": _over_axes(torch.sum),
    "mean": _over_axes(torch.mean),
    "prod": _over_one_axis(torch.prod),
    "max": _over_axes(torch.amax),
    "min": _over_axes(torch.amin),
    "var": _over_axes(lambda x, **axes: torch.var(x, correction=0, **axes)),
    "std": _over_axes(lambda x, **axes: torch.std(x, correction=0, **axes)),
    "norm": _norm,
    "logsumexp": _over_axes(torch.logsumexp),
    "any": _over_one_axis(torch.any),
    "all": _over_one_axis(torch.all),
    "argmax": _position(torch.argmax),
    "argmin": _position(torch.argmin),
    "cumsum": lambda x, axis=0: torch.cumsum(x, axis),
    "cumprod": lambda x, axis=0: torch.cumprod(x, axis),
    "softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "log_softmax": lambda x, axis=-1: torch.log_softmax(x, axis),
    "sort": lambda x, axis=-1: torch.sort(x, dim=axis, stable=True).values,
    "reshape": lambda x, *shape: torch.reshape(x, _size(shape)),
    "permute": lambda x, *axes: torch.permute(x, _size(axes)),
    "transpose": _transpose,
    "moveaxis": _moveaxis,
    "squeeze": lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, axis),
    "expand_dims": torch.unsqueeze,
    "broadcast_to": _expand,
    "concat": lambda tensors, axis=0: torch.concat(tensors, dim=axis),
    "stack": lambda tensors, axis=0: torch.stack(tensors, dim=axis),
    "vstack": torch.vstack,
    "hstack": torch.hstack,
    "flip": lambda x, axis=None: torch.flip(x, tuple(range(x.ndim)) if axis is None else (axis,)),
    "roll": lambda x, shift, axis=None: torch.roll(x, shift, axis),
    "tile": lambda x, *repeats: torch.tile(x, _size(repeats)),
    "repeat": _repeat,
    "take": _take,
    "dot": torch.matmul,
    "diagonal": lambda x, k=0: torch.diagonal(x, k),
    "tensordot": _tensordot,
    "cross": lambda a, b: torch.linalg.cross(*torch.broadcast_tensors(a, b)),
    "cond": torch.linalg.cond,
    "matrix_rank": torch.linalg.matrix_rank,
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "solve": _solve,
    "cholesky": _symmetric(torch.linalg.cholesky),
    "eigvalsh": _symmetric(torch.linalg.eigvalsh),
    "eigh": _symmetric(torch.linalg.eigh),
    "qr": torch.linalg.qr,
    "svdvals": torch.linalg.svdvals,
    "pinv": torch.linalg.pinv,
    "count_nonzero": _over_axes(
        lambda x, dim, keepdim: torch.count_nonzero(x, dim).reshape(torch.sum(x, dim, keepdim).shape)
    ),
    "nansum": _over_axes(torch.nansum),
    "nanmean": _over_axes(torch.nanmean),
    "logcumsumexp": lambda x, axis: torch.logcumsumexp(x, axis),
    "zeros": lambda *shape: torch.zeros(_size(shape)),
    "ones": lambda *shape: torch.ones(_size(shape)),
    "full": lambda shape, value: torch.full(_size((shape,)), float(value), dtype=torch.float64),
    "full_like": lambda x, value: torch.full(np.shape(x), float(value), dtype=torch.float64),
    "zeros_like": lambda x: torch.zeros_like(_tensor(x)),
    "ones_like": lambda x: torch.ones_like(_tensor(x)),
    "eye": torch.eye,
    "arange": torch.arange,
}
