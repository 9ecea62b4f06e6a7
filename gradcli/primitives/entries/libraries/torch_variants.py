"""PyTorch's variants of functions of the language that accept more: scale factors, optional axes, rounding modes.

They agree with the functions of the same names wherever both are defined.
"""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, normalize_axis, one_float, option, whole_numbers
from gradcli.primitives.bind import constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import (
    add,
    divide,
    floor_divide,
    multiply,
    subtract,
    trunc,
    zeros_like,
)
from gradcli.primitives.entries.comparisons import clip, greater, where
from gradcli.primitives.entries.exponential import logit, softplus
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.layers.activations import softmin
from gradcli.primitives.entries.linear_algebra.decompositions import cholesky, eigh, eigvalsh, pinv
from gradcli.primitives.entries.linear_algebra.linear_systems import Fit, lstsq
from gradcli.primitives.entries.linear_algebra.matrices import adjoint
from gradcli.primitives.entries.manipulation.gather_scatter import take_along_axis
from gradcli.primitives.entries.sampled_data.sampling import searchsorted
from gradcli.primitives.entries.scans import cumprod, cumsum, log_softmax, softmax
from gradcli.primitives.entries.shape import along_axis, squeeze, stack, tril, triu
from gradcli.primitives.operation import Composite

_VECTOR, _OTHER = [0.5, -1.25, 2.0], [1.5, 0.25, -0.75]
_POSITIVE = [[2.0, 0.5], [0.5, 3.0]]


def _scaled(of: Any, name: str, sign: str) -> Composite:
    return Composite(
        name, "x, y, alpha=1", f"x {sign} alpha*y",
        lambda x, y, alpha=1.0: of(x, y if type(alpha) in arrays.PYTHON_NUMBERS and alpha == 1 else multiply(alpha, y)),
        derivative=f"g, {sign}alpha*g, {sign}sum(g*y)".replace("+", ""), dialects="torch",
        samples=((_VECTOR, _OTHER), (_VECTOR, _OTHER, 2.0)),
    )  # fmt: skip


torch_add = _scaled(add, "add", "+")
torch_sub, torch_subtract = (_scaled(subtract, name, "-") for name in ("sub", "subtract"))


def _divided(x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return divide(x, y)
    if option(rounding_mode, ("trunc", "floor"), "rounding_mode") == "floor":
        return floor_divide(x, y)
    return trunc(divide(x, y))


torch_div, torch_divide = (
    Composite(
        name, "x, y, rounding_mode=None", "x/y, rounded down where rounding_mode='floor', to 0 where it is 'trunc'", _divided,
        derivative="g/y, -g*x/y**2; 0 where it is rounded", domain="y != 0", dialects="torch",
        samples=((_VECTOR, _OTHER),),
    )
    for name in ("div", "divide")
)  # fmt: skip


def _along(of: Any) -> Composite:
    return Composite(
        of.name, "x, axis", f"{of.doc.partition(',')[0]}; of a number that number of one element",
        lambda x, axis: along_axis(x, axis, of),
        derivative=of.derivative, edges=of.edges, dialects="torch",
        samples=((_VECTOR, 0),),
    )  # fmt: skip


torch_cumsum, torch_cumprod = map(_along, (cumsum, cumprod))


def _share(of: Any) -> Composite:
    """PyTorch's softmax and relatives: without an axis, it is the first one for tensors of rank 0, 1 and 3, else the
    second."""

    def definition(x: Any, axis: Any = None) -> Any:
        implicit = 0 if len(arrays.shape(x)) in (0, 1, 3) else 1
        return along_axis(x, implicit if axis is None else axis, of)

    return Composite(
        of.name, "x, axis=None", f"{of.doc}: of tensors of 1 and of 3 dimensions the first unless it is said, else the second",
        definition,
        derivative=of.derivative, dialects="torch",
        samples=((_VECTOR,), (_POSITIVE,), (_POSITIVE, 0)),
    )  # fmt: skip


torch_softmax, torch_log_softmax, torch_softmin = map(_share, (softmax, log_softmax, softmin))


def _squeezed(x: Any, axis: Any = None) -> Any:
    if axis is None:
        return squeeze(x)
    sizes = arrays.shape(x)
    axes = {normalize_axis(a, len(sizes) or 1) for a in whole_numbers(axis, "an axis")}
    return reshape(x, tuple(s for a, s in enumerate(sizes) if s != 1 or a not in axes))


torch_squeeze = Composite(
    "squeeze", "x, axis=None", "without the axes of size 1, or without those of some axes", _squeezed,
    derivative=squeeze.derivative, dialects="torch",
    samples=(([_VECTOR], 0), ([_VECTOR], (0, 1))),
)  # fmt: skip

torch_cholesky = Composite(
    "cholesky", "A, upper=False", "the lower triangular L with L@L.H = A, or its conjugate transpose",
    lambda A, upper=False: adjoint(cholesky(A)) if boolean(upper, "'upper'") else cholesky(A),  # noqa: N803
    derivative=cholesky.derivative, domain=cholesky.domain, edges=cholesky.edges, dialects="torch torch.linalg",
    samples=((_POSITIVE,), (_POSITIVE, True)),
)  # fmt: skip


def _from_triangle(A: Any, UPLO: Any) -> Any:  # noqa: N803
    """The symmetric, or Hermitian, matrix given by one triangle of A, differentiated as if A were it, as in PyTorch."""
    fixed = constant(A)
    part = tril if option(UPLO, ("L", "U", "l", "u"), "UPLO") in ("L", "l") else triu
    off_diagonal = part(fixed, -1 if part is tril else 1)
    return add(add(part(fixed), adjoint(off_diagonal)), subtract(A, fixed))


torch_eigh = Composite(
    "eigh", "A, UPLO='L'", eigh.doc, lambda A, UPLO="L": eigh(_from_triangle(A, UPLO)),  # noqa: N803
    derivative=eigh.derivative, domain=eigh.domain, edges=eigh.edges, dialects="torch.linalg",
)  # fmt: skip
torch_eigvalsh = Composite(
    "eigvalsh", "A, UPLO='L'", f"{eigvalsh.doc}; UPLO='L' or 'U' has one triangle read",
    lambda A, UPLO="L": eigvalsh(_from_triangle(A, UPLO)),  # noqa: N803
    derivative=eigvalsh.derivative, domain=eigvalsh.domain, edges=eigvalsh.edges, dialects="torch.linalg",
    samples=((_POSITIVE,),),
)  # fmt: skip


def _sorted_rows(
    sorted_sequence: Any, input: Any, right: Any = False, side: Any = None, out_int32: Any = False, sorter: Any = None
) -> Any:
    boolean(out_int32, "'out_int32'")
    way = option("left" if side is None else side, ("left", "right"), "side")
    behind = boolean(right, "'right'") or way == "right"
    ordered = sorted_sequence if sorter is None else take_along_axis(sorted_sequence, sorter, -1)
    *batch, size = arrays.shape(ordered) or (1,)
    if not batch:
        return searchsorted(ordered, input, right=behind)
    given = arrays.shape(input)
    if list(given[:-1]) != batch:
        raise ShapeError(f"'searchsorted' does not fit rows of shape {[*batch, size]} and values of {list(given)}")
    rows, values = reshape(ordered, (-1, size)), reshape(input, (-1, given[-1]))
    found = [searchsorted(index(rows, i), index(values, i), right=behind) for i in range(arrays.shape(rows)[0])]
    return reshape(stack(found), given) if found else zeros_like(input)


torch_searchsorted = Composite(
    "searchsorted", "sorted_sequence, input, right=False, side=None, out_int32=False, sorter=None",
    "where each of input belongs in the rows of sorted_sequence, which rise", _sorted_rows,
    derivative="none", dialects="torch",
    samples=(([1, 2, 4], [0, 2, 5]),),
)  # fmt: skip


def _by_driver(A: Any, b: Any, rcond: Any = None, driver: Any = None) -> Fit:  # noqa: N803
    way = option("gelsy" if driver is None else driver, ("gels", "gelsy", "gelsd", "gelss"), "driver")
    solution, residuals, rank, values = lstsq(A, b, rcond)
    nothing = index(reshape(constant(b), -1), slice(0, 0))
    has_values = way in ("gelsd", "gelss") and values is not None
    # As in PyTorch, results that a driver does not compute are empty. Singular values have no derivative here.
    return Fit(solution, residuals, nothing if way == "gels" else rank, constant(values) if has_values else nothing)


torch_lstsq = Composite(
    "lstsq", "A, b, rcond=None, driver=None", lstsq.doc, _by_driver,
    derivative=lstsq.derivative, domain=lstsq.domain, edges=lstsq.edges, dialects="torch torch.linalg",
)  # fmt: skip


def _softplus(x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    if (
        type(beta) in arrays.PYTHON_NUMBERS
        and beta == 1
        and type(threshold) in arrays.PYTHON_NUMBERS
        and threshold == 20
    ):
        # Above the default threshold softplus(x) equals x to rounding, so that no case distinction is needed.
        return softplus(x)
    scaled = multiply(beta, x)
    linear = greater(scaled, threshold)
    return where(linear, x, divide(softplus(where(linear, 0.0, scaled)), beta))


torch_softplus = Composite(
    "softplus", "x, beta=1, threshold=20", "log(1 + exp(beta*x))/beta, and x where beta*x is above the threshold", _softplus,
    derivative="g*sigmoid(beta*x)", dialects="torch",
    samples=((_VECTOR,), (_VECTOR, 2.0)),
)  # fmt: skip


def _logit(x: Any, eps: Any = None) -> Any:
    return logit(x if eps is None else clip(x, eps, subtract(1.0, eps)))


torch_logit = Composite(
    "logit", "x, eps=None", "log(x/(1 - x)), x held between eps and 1 - eps", _logit,
    derivative=logit.derivative, domain=logit.domain, dialects="torch",
    samples=([0.2, 0.7], ([0.2, 0.9], 0.25)),
)  # fmt: skip


def _cutting(A: Any, rtol: Any = None, hermitian: Any = False, atol: Any = None, rcond: Any = None) -> Any:  # noqa: N803
    for name, least in (("rtol", rtol), ("atol", atol), ("rcond", rcond)):
        if least is not None and one_float(least, f"'{name}'"):
            raise ShapeError(f"'pinv' takes singular values as 0 by their rounding alone, not by '{name}'")
    return pinv(_from_triangle(A, "L") if boolean(hermitian, "'hermitian'") else A)


torch_pinv, torch_pinverse = (Composite(
    name, "A, rtol=None, hermitian=False, atol=None, rcond=None", pinv.doc, _cutting,
    derivative=pinv.derivative, domain=pinv.domain, edges=pinv.edges, dialects=dialects,
    samples=((_POSITIVE,),),
) for name, dialects in (("pinv", "torch.linalg"), ("pinverse", "torch")))  # fmt: skip
