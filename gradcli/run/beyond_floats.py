"""Results that are not finite in floats, and have digits."""

from __future__ import annotations

from contextlib import suppress

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.run import digits

# Each element is a ball of its own: for more of them it takes long to find out.
_MOST_ELEMENTS = 100
# So many digits are asked for, and most computed with: whether there are any is the question.
_DIGITS, _PRECISION = 3, 60


def has_digits(request: digits.Request) -> bool:
    """Whether all results of a run are finite in ball arithmetic; False where it lacks a function or is not installed, or
    finding out takes many steps. `request` makes the run with the numbers as they were written."""
    with suppress(GradcliError, NotImplementedError), limits.attempt(), digits.computing():
        if sum(map(arrays.size, request().bindings.values())) <= _MOST_ELEMENTS:
            return digits.proved(request, _DIGITS, _PRECISION).finite
    return False
