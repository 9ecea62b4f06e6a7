"""The table of all functions of the language, by subject, and the lookup of names in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from os import path
from types import ModuleType

from gradcli.primitives import conversions
from gradcli.primitives.distribution_names import is_distribution, may_be_distribution
from gradcli.primitives.entries import (
    arithmetic,
    comparisons,
    complex_parts,
    exponential,
    indexing,
    linear,
    powers,
    reductions,
    shape,
)
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

# The files of entries that are imported at the start. Here and in `_LATER` each file imports entries only from those
# before it, and the functions of a subject are listed in the order of the files.
_AT_START = (
    conversions,
    comparisons,
    complex_parts,
    arithmetic,
    exponential,
    powers,
    indexing,
    shape,
    reductions,
    linear,
)

# The files that are imported when one of their names is first looked up: functions that formulas rarely use do not slow
# the start.
_LATER = (
    "statistics",
    "scans",
    "elementwise.trigonometric",
    "special_functions.special",
    "manipulation.creation",
    "elementwise.elementary",
    "elementwise.reciprocal_inverses",
    "layers.activations",
    "special_functions.distributions",
    "special_functions.numerical_partials",
    "special_functions.integrals",
    "special_functions.bessel",
    "special_functions.bessel_orders",
    "special_functions.special_integrals",
    "special_functions.elliptic",
    "special_functions.hypergeometric",
    "special_functions.incomplete_inverses",
    "special_functions.orthogonal_polynomials",
    "libraries.computer_algebra",
    "sampled_data.order_statistics",
    "sampled_data.nan_reductions",
    "sampled_data.covariances",
    "manipulation.gather_scatter",
    "manipulation.scatter_reductions",
    "manipulation.numpy_shape",
    "sampled_data.sampling",
    "manipulation.slice_updates",
    "elementwise.complex_numbers",
    "manipulation.copies",
    "layers.losses",
    "layers.networks",
    "layers.margin_losses",
    "layers.normalisations",
    "layers.convolutions",
    "layers.resampling",
    "layers.pooling",
    "linear_algebra.matrices",
    "linear_algebra.decompositions",
    "linear_algebra.eigenvalues",
    "linear_algebra.matrix_exponential",
    "linear_algebra.linear_systems",
    "linear_algebra.singular_vectors",
    "linear_algebra.products",
    "linear_algebra.polynomials",
    "sampled_data.fourier",
)

# The files whose functions are listed last within their subject: readers know most of them as operators.
_LISTED_LAST = (arithmetic, comparisons)

# Names with another meaning in a library or module. "base" is a log with a base, "method" a method of a tensor.
LIBRARY_MEANINGS = {
    "torch": frozenset(
        "cross equal select diff dot gradient kl_div max median meshgrid min nanmedian nonzero pad repeat size sort split std svd var vdot".split()  # noqa: SIM905
    ),
    "numpy": frozenset(["diff", "gradient", "kl_div", "select"]),
    "linalg": frozenset(["norm"]),
    "torch.linalg": frozenset(["diagonal", "lu_solve", "vander"]),
    "numpy.linalg": frozenset(["diagonal", "trace"]),
    "scipy.linalg": frozenset(["cholesky", "lu_factor", "lu_solve", "qr"]),
    "scipy.special": frozenset(["assoc_laguerre", "softmax", "log_softmax"]),
    "sympy": frozenset(["jn", "sinc", "yn"]),
    "jax.nn": frozenset(["gelu"]),
    "jax.lax": frozenset(["clamp", "cummax", "cummin", "cumprod", "cumsum", "max", "min", "select", "split"]),
    "math": frozenset(["isclose", "remainder"]),
    "base": frozenset(["log"]),
    "method": frozenset(["polygamma", "where"]),
}

# Names for which PyTorch accepts more arguments, and agrees with the language where both are defined.
TORCH_EXTENSIONS = {
    "torch": frozenset(
        "add sub subtract div divide cumsum cumprod softmax log_softmax softmin squeeze cholesky softplus lerp logit pinverse searchsorted lstsq".split()  # noqa: SIM905
    ),
    "torch.linalg": frozenset(["cholesky", "eigh", "eigvalsh", "lstsq", "pinv"]),
}
_NAMES_BY_REASON = {
    "it is fft of the windows of a signal: fft(unfold(x, 0, size, hop)*window)": "stft",
    "fft, ifft and the transforms of real numbers are there": "istft dct idct dst idst fht ifht",
    "a Schur form is not unique: eigvals, sqrtm and logm are there": "schur",
    "complex(a, b) is there, in the precision of its parts": "complex64 complex128 csingle cdouble",
    "distributions are called by their library, as in scipy.stats.norm.logpdf(x, loc=0, scale=1)": (
        "norm_logpdf logpdf logcdf logsf logpmf pmf log_prob icdf"
    ),
    "distributions of several numbers are not there": "multivariate_normal dirichlet",
    "it is complex: sph_legendre_p(n, m, theta)*cos(m*phi) is its real part, Znm(n, m, theta, phi) the real harmonic": (
        "sph_harm_y sph_harm Ynm"
    ),
    "NumPy has no such numbers; float16 and float32 are there": "bfloat16 float8_e4m3fn float8_e5m2",
    "differential equations and integrals are not solved here": "integrate odeint solve_ivp quad dblquad",
}
_REASONS = {name: reason for reason, names in _NAMES_BY_REASON.items() for name in names.split()}


def entries() -> tuple[Operation, ...]:
    """Every entry except `foreign_entries`: the functions of the language and the internal primitives."""
    return tuple(_all())


@cache
def _all() -> dict[Operation, str]:
    return _subjects((*_AT_START, *map(_load, _LATER)))


def _load(file: str) -> ModuleType:
    return import_module(f"gradcli.primitives.entries.{file}")


def _subjects(modules: Iterable[ModuleType]) -> dict[Operation, str]:
    """The subject of every entry defined in the modules, in order."""
    found: dict[Operation, str] = {}
    for module in modules:
        for entry in _entries_in(module):
            # An entry that a module merely imports was found in its own module before.
            found.setdefault(entry, entry.subject or module.SUBJECT)
    return found


def _entries_in(module: ModuleType) -> list[Operation]:
    return [value for value in vars(module).values() if isinstance(value, Operation)]


@cache
def subjects() -> dict[str, tuple[Operation, ...]]:
    """The functions of the language by subject, in the order of a listing."""
    order = (
        "elementwise",
        "special",
        "complex numbers",
        "reductions",
        "losses",
        "layers",
        "shape",
        "linear algebra",
        "polynomials",
        "Fourier transforms",
        "creation",
    )
    last = {entry: place for place, module in enumerate(_LISTED_LAST, 1) for entry in _entries_in(module)}
    listed = sorted(_all(), key=lambda entry: last.get(entry, 0))
    return {subject: tuple(e for e in listed if _all()[e] == subject and not e.internal) for subject in order}


def _named(operations: Iterable[Operation]) -> dict[str, Operation]:
    return {name: o for o in operations if not o.internal for name in (o.name, *o.aliases)}


_LOADED = _subjects(_AT_START)
_BY_NAME = _named(_LOADED)


@cache
def _prepared() -> Mapping[str, Any]:
    """The module that the build of the package wrote, see `prepared_text`; empty if there is none."""
    try:
        return vars(import_module("gradcli.primitives._entry_files"))
    except ImportError:
        return {}


@cache
def _files() -> dict[str, str]:
    """The file of each name that `_LATER` adds: as prepared, if no file has changed since.

    Whether one has is found by reading them all, which takes 2 ms.
    """
    prepared = _prepared()
    return prepared["files"] if prepared.get("fingerprint") == _fingerprint() else _computed_files()


def _computed_files() -> dict[str, str]:
    """Find the names of each file as `_files` does, by importing all files. Takes 0.1 s."""
    found: dict[str, str] = dict.fromkeys(_BY_NAME, "")
    for file in _LATER:
        for name in _named(_entries_in(_load(file))):
            found.setdefault(name, file)
    return {name: file for name, file in found.items() if file}


def _fingerprint() -> str:
    """A text that identifies the contents of the files."""
    from importlib.util import source_hash

    folder = path.join(path.dirname(__file__), "entries")
    contents = []
    for file in _LATER:
        with open(path.join(folder, *file.split(".")) + ".py", "rb") as source:
            contents += [file.encode(), source.read()]
    return source_hash(b"\n".join(contents)).hex()


def prepared_text() -> str:
    """The source of the module that `_files` imports; the build of a wheel writes it."""
    return f"fingerprint = {_fingerprint()!r}\nfiles = {_computed_files()!r}\n"


def find(name: str, *dialects: str) -> Operation | None:
    """The function with this name or alias, in the meaning of the first dialect that has its own, else in the
    language's.

    None if there is no such function.
    """
    if dialects and may_be_distribution(dialects[0]):
        if not is_distribution(dialects[0]):
            return None
        from gradcli.primitives.entries.libraries.probability import methods

        return methods(dialects[0]).get(name)
    for dialect in dialects:
        if name in LIBRARY_MEANINGS.get(dialect, ()) or name in TORCH_EXTENSIONS.get(dialect, ()):
            return _of_libraries()[dialect, name]
    found = _BY_NAME.get(name)
    if found is None:
        # What the prepared index says of a name is right if the file has it, even if files have changed since.
        found = _in_file(_prepared().get("files", {}).get(name), name) or _in_file(_files().get(name), name)
        if found is not None:
            _BY_NAME[name] = found
    return found


def _in_file(file: str | None, name: str) -> Operation | None:
    """The function with this name in one of the files of `_LATER`; None if there is none."""
    return _named(_entries_in(_load(file))).get(name) if file in _LATER else None


def dialects_of(module: str) -> tuple[str, str]:
    """The dialects of a module: its own name (that of NumPy or SciPy for JAX's copies of them), and its family
    "linalg", "torch" or "numpy"."""
    own = module.removeprefix("jax.") if module.startswith(("jax.numpy", "jax.scipy")) else module
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
    return _REASONS.get(name)


def reason_suffix(name: str) -> str:
    """The reason of `why_missing` as the end of an error message; empty if there is none."""
    reason = why_missing(name)
    return f": {reason}" if reason else ""


def is_wider(name: str) -> bool:
    """Return whether PyTorch's function of this name accepts more than the language's."""
    return name in TORCH_EXTENSIONS["torch"]


def differs(name: str) -> bool:
    """Return whether PyTorch or NumPy means something else by a name than the language."""
    return name in LIBRARY_MEANINGS["torch"] or name in LIBRARY_MEANINGS["numpy"]


@cache
def _of_libraries() -> dict[tuple[str, str], Operation]:
    """The entries of `foreign_entries` by dialect and name."""
    return {(dialect, e.name): e for e in foreign_entries() for dialect in e.dialects.split()}


def foreign_entries() -> tuple[Operation, ...]:
    """The entries with a library's own meaning of a name, imported only by programs in that library's dialect."""
    from gradcli.primitives.entries.libraries import library_variants, torch_variants

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
    return (*dict.fromkeys((*_BY_NAME, *_files())),)


def operators() -> dict[str, str]:
    """Python's operators by the names of the functions that they call."""
    return {e.name: e.operator for e in _LOADED if isinstance(e, Primitive) and e.operator is not None}
