"""Functions that no array library has, computed by SciPy or element by element in ball arithmetic."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from gradcli.arrays import backends, spellings
from gradcli.arrays.dtypes import PYTHON_NUMBERS

# The namespaces of floats and of NumPy arrays.
_ON_HOST = ("gradcli.arrays.floats", "gradcli.arrays.numpy_arrays")
# The precisions in bits that are tried in turn, and the accurate bits that suffice for a float. With 1200 bits most
# numbers that are exactly 0 are known to be below the smallest float.
_PRECISIONS, _FLOAT_BITS = (100, 200, 400, 800, 1200, 3200), 56
# The number of results in the cache.
_CACHE_SIZE = 4096


def by_scipy(xp: Any, name: str, *operands: Any, **params: Any) -> Any:
    """Call a function of `gradcli.arrays.scipy_single_results` with floats or NumPy arrays.

    Raises MissingFunctionError for arrays of another library.
    """
    check_on_host(xp, name)
    import numpy

    from gradcli.arrays import scipy_single_results

    with numpy.errstate(all="ignore"):
        found = getattr(scipy_single_results, name)(*(numpy.asarray(o, "float64") for o in operands), **params)
    return found.item() if all(type(o) in PYTHON_NUMBERS for o in operands) else found


def by_balls(xp: Any, name: str, *operands: Any, **params: Any) -> Any:
    """Call a function of FLINT numbers with floats or NumPy arrays; nan where ball arithmetic finds no value.

    Raises BackendError if FLINT is not installed, MissingFunctionError for arrays of another library.
    """
    check_on_host(xp, name)
    backends.backend_module(backends.DIGITS.name)
    each = partial(_rounded, name, tuple(params.items()))
    if all(type(o) in PYTHON_NUMBERS for o in operands):
        return each(*operands)
    import numpy

    return numpy.asarray(numpy.frompyfunc(each, len(operands), 1)(*operands), "float64")


def check_on_host(xp: Any, name: str) -> None:
    """Raise MissingFunctionError unless a namespace is that of floats or of NumPy arrays."""
    if getattr(xp, "__name__", "") not in _ON_HOST:
        raise spellings.MissingFunctionError(xp.name, name)


@lru_cache(_CACHE_SIZE)
def _rounded(name: str, params: tuple[tuple[str, Any], ...], *operands: Any) -> float:
    """Evaluate a function of FLINT numbers at floats and round the result.

    Cached, because higher-order derivatives repeat the same calls.
    """
    from flint import fmpq

    from gradcli.arrays.flint.balls import UndecidedError, exact, precise, to_float
    from gradcli.arrays.flint.flint_names import of_numbers

    function = of_numbers(name)
    assert function is not None
    numbers = [exact(float(o)) for o in operands]
    found = None
    for bits in _PRECISIONS:
        with precise(bits):
            try:
                found = function(*numbers, **dict(params))
            except UndecidedError:
                continue
            if type(found) is fmpq or not found.is_finite() or found.rel_accuracy_bits() >= _FLOAT_BITS:
                return to_float(found)
            # A result that is known to underflow is 0.
            if float(abs(found).upper()) == 0.0:
                return 0.0
    return float("nan")
