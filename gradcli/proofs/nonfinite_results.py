"""Tells whether results that are not finite in floating point have digits in ball arithmetic."""

from __future__ import annotations

from contextlib import suppress

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.evaluation.session import RequestFactory
from gradcli.proofs import digits

# Bound on the number of input elements: each element is a separate ball, so evaluation of large arrays takes long.
_MOST_ELEMENTS = 100
# Decimal digits requested, and the largest working precision in digits. Both are small: only the existence of digits
# matters here.
_DIGITS, _PRECISION = 3, 60


def has_digits(request: RequestFactory) -> bool:
    """Return whether all results of a run are finite in ball arithmetic.

    False as well where ball arithmetic lacks a function or python-flint is not installed, or where the evaluation
    exceeds the step limits of an attempt. `request` returns the run with its numbers as they were written.
    """
    with suppress(GradcliError, NotImplementedError), limits.optional_budget(), digits.computing():
        if sum(map(arrays.size, request().bindings.values())) <= _MOST_ELEMENTS:
            return digits.proved(request, _DIGITS, _PRECISION).finite
    return False
