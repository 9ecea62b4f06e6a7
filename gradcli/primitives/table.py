"""The functions of the language by subject, and how a name is found among them."""

from __future__ import annotations

from gradcli.primitives import (
    arithmetic,
    comparisons,
    conversions,
    creation,
    decompositions,
    exponential,
    indexing,
    linear,
    matrices,
    powers,
    reductions,
    scans,
    shape,
    special,
    statistics,
    trigonometric,
)
from gradcli.primitives.primitive import Operation, Primitive

# The files of entries, and the subject of those that do not say another.
_MODULES = {
    conversions: "shape",
    comparisons: "elementwise",
    arithmetic: "elementwise",
    exponential: "elementwise",
    powers: "elementwise",
    trigonometric: "elementwise",
    special: "special",
    shape: "shape",
    indexing: "shape",
    reductions: "reductions",
    statistics: "reductions",
    scans: "reductions",
    linear: "linear algebra",
    matrices: "linear algebra",
    decompositions: "linear algebra",
    creation: "creation",
}

# What a listing shows first; functions that are not here come behind those of their subject that are.
_FIRST = """
    abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt square reciprocal sin cos tan asin acos atan
    atan2 sinh cosh tanh sech asinh acosh atanh logcosh hypot floor ceil round trunc frac clip maximum minimum where
    heaviside copysign fmod remainder logaddexp pow deg2rad rad2deg add subtract multiply divide floor_divide
    negative equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not isfinite
    isnan
    sigmoid logsigmoid softplus relu leaky_relu elu silu gelu sinc logit erf erfc erfinv gamma lgamma digamma
    polygamma beta betaln xlogy xlog1py ndtr ndtri i0 i1 j0 j1
    sum mean prod max min var std median norm logsumexp any all argmax argmin cumsum cumprod softmax log_softmax
    sort
    reshape transpose permute moveaxis squeeze expand_dims broadcast_to concat stack vstack hstack flip roll
    tile repeat ravel diag tril triu take
    matmul dot outer einsum trace diagonal tensordot kron cross inv det logdet solve cholesky qr eigh eigvalsh
    svdvals pinv matrix_power matrix_exp
    zeros ones full zeros_like ones_like full_like eye arange linspace randn rand
""".split()  # noqa: SIM905


def entries() -> tuple[Operation, ...]:
    """Every entry of the table: the functions of the language and the primitives behind them."""
    return tuple(_subjects())


def _subjects() -> dict[Operation, str]:
    """The subject of every entry, in the order of the files."""
    found: dict[Operation, str] = {}
    for module, subject in _MODULES.items():
        for value in vars(module).values():
            if isinstance(value, Operation):
                # One that a file only imports has been found in its own.
                found.setdefault(value, value.subject or subject)
    return found


def _by_subject() -> dict[str, tuple[Operation, ...]]:
    subjects = {e: subject for e, subject in _subjects().items() if not e.internal}
    places = {name: place for place, name in enumerate(_FIRST)}
    listed = sorted(subjects, key=lambda e: places.get(e.name, len(places)))
    order = ("elementwise", "special", "reductions", "shape", "linear algebra", "creation")
    return {subject: tuple(e for e in listed if subjects[e] == subject) for subject in order}


SUBJECTS = _by_subject()

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


def operators() -> dict[str, str]:
    """The functions that Python's syntax has operators for, and those, by the names of the functions."""
    return {e.name: e.operator for e in entries() if isinstance(e, Primitive) and e.operator is not None}
