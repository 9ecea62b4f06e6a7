"""The table of all functions of the language, by subject, and the lookup of names in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from types import ModuleType

from gradcli.primitives import conversions
from gradcli.primitives.distribution_names import is_distribution, may_be_distribution
from gradcli.primitives.entries import (
    arithmetic,
    comparisons,
    creation,
    exponential,
    indexing,
    linear,
    powers,
    reductions,
    scans,
    shape,
    special,
    statistics,
    trigonometric,
)
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive

# The modules of entries that are imported at the start, and the subject of entries that do not set their own.
_MODULES: dict[ModuleType, str] = {
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
    creation: "creation",
}

# The modules that are imported when one of their names is first looked up, with their subject and names: functions that
# formulas rarely use do not slow the start.
_LATER = {
    "order_statistics": (
        "reductions",
        "argsort topk kthvalue cummax cummin count_nonzero nansum nanmean ptp average quantile percentile logcumsumexp "
        "trapezoid trapz cumulative_trapezoid cumtrapz aminmax msort var_mean std_mean",
    ),
    "losses": (
        "losses",
        "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits nll_loss "
        "cross_entropy gaussian_nll_loss poisson_nll_loss",
    ),
    "networks": (
        "layers",
        "normalize cosine_similarity pairwise_distance layer_norm rms_norm prelu glu embedding "
        "scaled_dot_product_attention",
    ),
    "normalisations": ("layers", "group_norm batch_norm instance_norm local_response_norm"),
    "convolutions": (
        "layers",
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d avg_pool3d "
        "max_pool1d max_pool2d max_pool3d",
    ),
    "resampling": (
        "layers",
        "interpolate upsample upsample_nearest upsample_bilinear adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d",
    ),
    "margin_losses": (
        "losses",
        "margin_ranking_loss soft_margin_loss hinge_embedding_loss cosine_embedding_loss multi_margin_loss "
        "multilabel_soft_margin_loss triplet_margin_loss",
    ),
    "products": (
        "linear algebra",
        "addmv addr addbmm vecdot bilinear dist pdist block_diag tensorsolve tensorinv lu_solve",
    ),
    "covariances": ("reductions", "cov corrcoef"),
    "slice_updates": (
        "shape",
        "narrow narrow_copy split_with_sizes broadcast_tensors broadcast_arrays expand_as reshape_as view_as dstack "
        "diagflat cartesian_prod select_scatter slice_scatter diagonal_scatter index_fill index_copy index_put masked_scatter "
        "pixel_shuffle pixel_unshuffle channel_shuffle",
    ),
    "elementary": (
        "elementwise",
        "clamp_min clamp_max rsub sec csc cot csch coth sinpi cospi fmax fmin nextafter logaddexp2 isinf nan_to_num isclose allclose lerp addcmul addcdiv "
        "threshold sind cosd tand asind acosd atand",
    ),
    "activations": (
        "special",
        "softsign hardtanh relu6 hardsigmoid hardswish hard_swish celu selu mish tanhshrink softshrink hardshrink softmin",
    ),
    "gather_scatter": (
        "shape",
        "split chunk unbind meshgrid nonzero argwhere take_along_axis take_along_dim gather scatter scatter_add index_select "
        "index_add masked_fill masked_select one_hot unflatten diag_embed rot90 "
        "as_strided",
    ),
    "numpy_shape": (
        "shape",
        "array_split tensor_split vsplit hsplit dsplit column_stack append atleast_1d atleast_2d atleast_3d rollaxis flipud fliplr "
        "partition",
    ),
    "sampling": ("shape", "interp searchsorted bincount convolve pad unfold"),
    "matrices": ("linear algebra", "inv inverse det logdet solve matrix_power kron cross tensordot dot inner vdot"),
    "decompositions": ("linear algebra", "cholesky eigvalsh eigh qr svdvals pinv pinverse"),
    "matrix_exponential": ("linear algebra", "matrix_exp expm"),
    "linear_systems": (
        "linear algebra",
        "linear baddbmm addmm cdist slogdet solve_triangular cholesky_solve solve_sylvester solve_banded lstsq multi_dot "
        "vander matrix_norm cond",
    ),
    "singular_vectors": ("linear algebra", "svd"),
    "distributions": (
        "special",
        "factorial comb perm beta rgamma gammasgn erfcx erfcinv log_ndtr norm_pdf norm_cdf entr rel_entr multigammaln mvlgamma",
    ),
    "bessel": (
        "special",
        "i0e i1e y0 y1 k0 k1 k0e k1e jv jn besselj yv yn bessely iv besseli ive bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 "
        "scaled_modified_bessel_k0 scaled_modified_bessel_k1",
    ),
    "integrals": (
        "special",
        "exp1 E1 expi Ei expn dawsn ellipk elliptic_k ellipe gammainc gammaincc igamma igammac betainc zeta lambertw LambertW",
    ),
    "numerical_partials": ("special", ""),
    "bessel_orders": (
        "special",
        "kv kn besselk kve struve modstruve spherical_jn spherical_yn spherical_in spherical_kn airyai airy_ai airyaiprime "
        "airybi airybiprime airy",
    ),
    "special_integrals": (
        "special",
        "erfi fresnels fresnelc fresnel si Si ci Ci sici shi Shi chi Chi shichi owens_t polylog",
    ),
    "elliptic": (
        "special",
        "ellipkinc elliptic_f ellipeinc ellipkm1 elliprf elliprd elliprg elliprc elliprj elliptic_e",
    ),
    "hypergeometric": ("special", "hyp0f1 hyp1f1 hyperu hyp2f1"),
    "incomplete_inverses": ("special", "gammaincinv gammainccinv betaincc betaincinv betainccinv"),
    "reciprocal_inverses": (
        "elementwise",
        "acot arccot asec arcsec acsc arccsc acoth arccoth asech arcsech acsch arccsch",
    ),
    "orthogonal_polynomials": (
        "special",
        "eval_hermite hermite eval_hermitenorm hermite_prob eval_chebyt chebyshevt eval_chebyu chebyshevu eval_legendre "
        "legendre eval_laguerre laguerre eval_genlaguerre assoc_laguerre eval_gegenbauer gegenbauer eval_jacobi jacobi "
        "lpmv assoc_legendre assoc_legendre_p sph_legendre_p Znm",
    ),
    "student_t": ("special", "stdtr stdtrit"),
    "computer_algebra": ("special", "Max Min loggamma lowergamma uppergamma"),
    "copies": (
        "shape",
        "asarray as_tensor from_numpy contiguous ascontiguousarray copy clone array tensor size numel item real "
        "real_if_close conj conjugate conj_physical resolve_conj resolve_neg positive imag angle isreal iscomplex",
    ),
}
_HOMES = {name: file for file, (_, listed) in _LATER.items() for name in listed.split()}

# Names with another meaning in a library or module. "base" is a log with a base, "method" a method of a tensor.
LIBRARY_MEANINGS = {
    "torch": frozenset(
        "cross equal select diff dot kl_div max median meshgrid min nonzero pad repeat size sort split std svd var vdot".split()  # noqa: SIM905
    ),
    "numpy": frozenset(["diff", "gradient", "kl_div", "select"]),
    "linalg": frozenset(["norm"]),
    "torch.linalg": frozenset(["lu_solve", "vander"]),
    "scipy.linalg": frozenset(["cholesky", "qr"]),
    "scipy.special": frozenset(["softmax", "log_softmax"]),
    "sympy": frozenset(["jn", "sinc", "yn"]),
    "jax.nn": frozenset(["gelu"]),
    "jax.lax": frozenset(["clamp"]),
    "math": frozenset(["remainder"]),
    "base": frozenset(["log"]),
    "method": frozenset(["polygamma", "where"]),
}

# Names for which PyTorch accepts more arguments, and agrees with the language where both are defined.
TORCH_EXTENSIONS = {
    "torch": frozenset(
        "add sub subtract div divide cumsum cumprod softmax log_softmax softmin squeeze cholesky softplus logit pinverse searchsorted lstsq".split()  # noqa: SIM905
    ),
    "torch.linalg": frozenset(["cholesky", "eigh", "eigvalsh", "lstsq", "pinv"]),
}

# The order of functions in a listing; those that are not here follow at the end of their subject.
_LISTING_ORDER = """
    abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt square reciprocal sin cos tan sec csc cot sinpi
    cospi asin acos atan acot asec acsc atan2 sinh cosh tanh sech csch coth asinh acosh atanh acoth asech acsch logcosh hypot floor ceil round trunc
    frac clip maximum minimum Max Min fmax fmin where heaviside copysign nextafter fmod remainder logaddexp logaddexp2 pow
    lerp addcmul addcdiv threshold nan_to_num deg2rad rad2deg add subtract multiply divide floor_divide negative
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not isfinite isinf isnan
    isclose
    sigmoid logsigmoid softplus softsign relu relu6 leaky_relu elu celu selu silu gelu mish hardtanh hardsigmoid
    hardswish tanhshrink softshrink hardshrink sinc logit erf erfc erfcx erfinv erfcinv gamma lgamma digamma polygamma
    multigammaln factorial comb perm beta betaln betainc gammainc gammaincc zeta xlogy xlog1py entr rel_entr ndtr
    log_ndtr ndtri norm_pdf norm_cdf stdtr stdtrit gammaincinv gammainccinv betaincc betaincinv betainccinv owens_t
    i0 i0e i1 i1e j0 j1 jv y0 y1 yv k0 k0e k1 k1e iv ive kv kve
    spherical_jn spherical_yn spherical_in spherical_kn struve modstruve airyai airyaiprime airybi airybiprime airy
    lambertw expi exp1 expn dawsn erfi si ci sici shi chi shichi fresnels fresnelc fresnel polylog
    ellipk ellipkm1 ellipe ellipkinc ellipeinc elliptic_e elliprf elliprd elliprg elliprj elliprc
    hyp0f1 hyp1f1 hyperu hyp2f1
    eval_legendre lpmv assoc_legendre sph_legendre_p Znm eval_hermite eval_hermitenorm eval_laguerre eval_genlaguerre
    eval_chebyt eval_chebyu eval_gegenbauer eval_jacobi
    sum mean prod max min var std median norm logsumexp any all argmax argmin cumsum cumprod softmax log_softmax
    softmin sort
    reshape transpose permute moveaxis squeeze expand_dims broadcast_to concat stack vstack hstack flip roll tile
    repeat ravel diag tril triu take
    matmul dot outer einsum trace diagonal tensordot kron cross inv det logdet solve cholesky qr eigh eigvalsh
    svdvals pinv matrix_power matrix_exp
    zeros ones full zeros_like ones_like full_like eye arange linspace randn rand
""".split()  # noqa: SIM905


def entries() -> tuple[Operation, ...]:
    """Every entry except `library_entries`: the functions of the language and the internal primitives."""
    return tuple(_all())


@cache
def _all() -> dict[Operation, str]:
    later = {_load(file): subject for file, (subject, _) in _LATER.items()}
    return _subjects(_MODULES | later)


def _load(file: str) -> ModuleType:
    return import_module(f"gradcli.primitives.entries.{file}")


def _subjects(modules: dict[ModuleType, str]) -> dict[Operation, str]:
    """The subject of every entry defined in the modules, in order."""
    found: dict[Operation, str] = {}
    for module, subject in modules.items():
        for value in vars(module).values():
            if isinstance(value, Operation):
                # An entry that a module merely imports was found in its own module before.
                found.setdefault(value, value.subject or subject)
    return found


@cache
def subjects() -> dict[str, tuple[Operation, ...]]:
    """The functions of the language by subject, in the order of a listing."""
    public = {e: subject for e, subject in _all().items() if not e.internal}
    places = {name: place for place, name in enumerate(_LISTING_ORDER)}
    listed = sorted(public, key=lambda e: places.get(e.name, len(places)))
    order = ("elementwise", "special", "reductions", "losses", "layers", "shape", "linear algebra", "creation")
    return {subject: tuple(e for e in listed if public[e] == subject) for subject in order}


def _named(operations: Iterable[Operation]) -> dict[str, Operation]:
    return {name: o for o in operations if not o.internal for name in (o.name, *o.aliases)}


_LOADED = _subjects(_MODULES)
_BY_NAME = _named(_LOADED)


def find(name: str, *dialects: str) -> Operation | None:
    """The function with this name or alias, in the meaning of the first dialect that has its own, else in the
    language's.

    None if there is no such function.
    """
    if dialects and may_be_distribution(dialects[0]):
        if not is_distribution(dialects[0]):
            return None
        from gradcli.primitives.entries.probability import methods

        return methods(dialects[0]).get(name)
    for dialect in dialects:
        if name in LIBRARY_MEANINGS.get(dialect, ()) or name in TORCH_EXTENSIONS.get(dialect, ()):
            return _of_libraries()[dialect, name]
    found = _BY_NAME.get(name)
    if found is None and name in _HOMES:
        file = _HOMES[name]
        defined = (o for o in vars(_load(file)).values() if isinstance(o, Operation) and o not in _LOADED)
        found = _named(defined).get(name)
        if found is not None:
            _BY_NAME[name] = found
    return found


def dialects_of(module: str) -> tuple[str, str]:
    """The dialects of a module: its own name (that of SciPy for JAX's copy of it), and its family "linalg", "torch" or
    "numpy"."""
    own = module.removeprefix("jax.") if module.startswith("jax.scipy") else module
    if module.endswith("linalg"):
        return own, "linalg"
    return own, "torch" if module.startswith("torch") else "numpy"


def numpy_meaning(name: str) -> Operation | None:
    """NumPy's meaning of a name that means something else in the language, unless PyTorch's differs from NumPy's; else
    None."""
    found = _of_libraries()["numpy", name] if name in LIBRARY_MEANINGS["numpy"] else None
    alike = name not in LIBRARY_MEANINGS["torch"] or _of_libraries()["torch", name] is found
    return found if alike else None


def why_missing(name: str) -> str | None:
    """The reason why a well-known name is not supported; None if it is not known."""
    from gradcli.primitives.unsupported import REASONS

    return REASONS.get(name)


def beyond(name: str) -> str:
    """The reason of `why_missing` as the end of an error message; empty if there is none."""
    reason = why_missing(name)
    return f": {reason}" if reason else ""


def is_wider(name: str) -> bool:
    """Whether PyTorch's function of this name accepts more than the language's."""
    return name in TORCH_EXTENSIONS["torch"]


def differs(name: str) -> bool:
    """Whether PyTorch or NumPy means something else by a name than the language."""
    return name in LIBRARY_MEANINGS["torch"] or name in LIBRARY_MEANINGS["numpy"]


@cache
def _of_libraries() -> dict[tuple[str, str], Operation]:
    """The entries of `library_entries` by dialect and name."""
    return {(dialect, e.name): e for e in library_entries() for dialect in e.dialects.split()}


def library_entries() -> tuple[Operation, ...]:
    """The entries with a library's own meaning of a name, imported only by programs in that library's dialect."""
    from gradcli.primitives.entries import library_variants, torch_variants

    return tuple(
        e
        for file in (library_variants, torch_variants)
        for e in vars(file).values()
        if isinstance(e, Operation) and e.dialects
    )


def known(name: str) -> Operation:
    """The function with this name or alias, which must exist."""
    operation = find(name)
    assert operation is not None
    return operation


def names() -> tuple[str, ...]:
    """Every name and alias of the language's functions."""
    return (*dict.fromkeys((*_BY_NAME, *_HOMES)),)


def operators() -> dict[str, str]:
    """Python's operators by the names of the functions that they call."""
    return {e.name: e.operator for e in _LOADED if isinstance(e, Primitive) and e.operator is not None}
