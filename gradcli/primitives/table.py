"""The functions of the language by subject, and how a name is found among them."""

from __future__ import annotations

from gradcli.primitives import (
    arithmetic,
    conversions,
    creation,
    decompositions,
    exponential,
    indexing,
    linear,
    matrices,
    reductions,
    scans,
    shape,
    special,
    trigonometric,
)
from gradcli.primitives.primitive import Operation, Primitive

_MODULES = (
    conversions,
    arithmetic,
    exponential,
    trigonometric,
    special,
    shape,
    indexing,
    reductions,
    scans,
    linear,
    matrices,
    decompositions,
    creation,
)

SUBJECTS: dict[str, tuple[Operation, ...]] = {
    "elementwise": (
        arithmetic.absolute, arithmetic.sign, exponential.exp, exponential.exp2, exponential.expm1,
        exponential.log, exponential.log2, exponential.log10, exponential.log1p, exponential.sqrt,
        exponential.rsqrt, exponential.cbrt, exponential.square, arithmetic.reciprocal,
        trigonometric.sin, trigonometric.cos, trigonometric.tan, trigonometric.asin,
        trigonometric.acos, trigonometric.atan, trigonometric.atan2, trigonometric.sinh,
        trigonometric.cosh, trigonometric.tanh, trigonometric.asinh, trigonometric.acosh,
        trigonometric.atanh, trigonometric.hypot, arithmetic.floor, arithmetic.ceil,
        arithmetic.round_, arithmetic.trunc, arithmetic.frac, arithmetic.clip, arithmetic.maximum,
        arithmetic.minimum, arithmetic.where, arithmetic.heaviside, arithmetic.copysign, arithmetic.fmod,
        arithmetic.remainder, exponential.logaddexp, exponential.power, trigonometric.deg2rad,
        trigonometric.rad2deg, arithmetic.add, arithmetic.subtract, arithmetic.multiply,
        arithmetic.divide, arithmetic.floor_divide, arithmetic.negative, arithmetic.equal,
        arithmetic.not_equal, arithmetic.less, arithmetic.less_equal, arithmetic.greater,
        arithmetic.greater_equal, arithmetic.logical_and, arithmetic.logical_or,
        arithmetic.logical_not, arithmetic.isfinite, arithmetic.isnan,
    ),
    "special": (
        exponential.sigmoid, exponential.logsigmoid, exponential.softplus, special.relu,
        special.leaky_relu, special.elu, special.silu, special.gelu, trigonometric.sinc,
        exponential.logit, special.erf, special.erfc, special.erfinv, special.gamma,
        special.lgamma, special.digamma, special.polygamma, special.beta, special.betaln,
        exponential.xlogy, exponential.xlog1py, special.ndtr, special.ndtri, special.i0,
        special.i1, special.j0, special.j1,
    ),
    "reductions": (
        reductions.sum_, reductions.mean, reductions.prod, reductions.max_, reductions.min_,
        reductions.var, reductions.std, reductions.median, reductions.norm, reductions.logsumexp,
        reductions.any_, reductions.all_, reductions.argmax, reductions.argmin, scans.cumsum,
        scans.cumprod, scans.softmax, scans.log_softmax, scans.sort,
    ),
    "shape": (
        conversions.reshape, shape.transpose, conversions.permute, shape.moveaxis, shape.squeeze, shape.expand_dims,
        conversions.broadcast_to, shape.concat, shape.stack, shape.vstack, shape.hstack, shape.flip, shape.roll,
        shape.tile, shape.repeat, shape.ravel, indexing.diag, shape.tril, shape.triu, shape.take,
    ),
    "linear algebra": (
        linear.matmul, linear.dot, linear.outer, linear.einsum, linear.trace, linear.diagonal, matrices.tensordot,
        matrices.kron, matrices.cross, matrices.inv, matrices.det, matrices.logdet, matrices.solve,
        decompositions.cholesky, decompositions.qr, decompositions.eigh, decompositions.eigvalsh,
        decompositions.svdvals, decompositions.pinv, matrices.matrix_power, decompositions.matrix_exp,
    ),
    "creation": (
        creation.zeros, creation.ones, creation.full, arithmetic.zeros_like,
        arithmetic.ones_like, creation.full_like, creation.eye,
        creation.arange, creation.linspace, creation.randn, creation.rand,
    ),
}  # fmt: skip

_BY_NAME = {
    name: operation
    for operations in SUBJECTS.values()
    for operation in operations
    for name in (operation.name, *operation.aliases)
}


def find(name: str) -> Operation | None:
    """The function of the language with this name or alias."""
    return _BY_NAME.get(name)


def known(name: str) -> Operation:
    """The function of the language with this name or alias, which there is."""
    return _BY_NAME[name]


def names() -> tuple[str, ...]:
    """Every name and alias of the language's functions."""
    return tuple(_BY_NAME)


def entries() -> tuple[Operation, ...]:
    """Every entry of the table: the functions of the language and the primitives behind them."""
    found = (v for module in _MODULES for v in vars(module).values() if isinstance(v, Operation))
    return tuple(dict.fromkeys(found))


def operators() -> dict[str, str]:
    """The functions that Python's syntax has operators for, and those, by the names of the functions."""
    return {e.name: e.operator for e in entries() if isinstance(e, Primitive) and e.operator is not None}
