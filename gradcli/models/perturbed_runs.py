"""A rounding-error estimate of a computation: it runs a second time with every result perturbed by a few units in the
last place, and the difference of the two results estimates the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli.errors import GradcliError, LimitError
from gradcli.kinds.jets import Jet, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.primitives.entries.arithmetic import multiply


def run_twice(function: Callable[[Mapping[str, Any]], Any], given: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The results of both runs of a function of values by name; None where the function fails or does not depend on the
    values."""
    roundings = Perturbation()
    # The multiplication perturbs the inputs, as the results of operations are.
    values = {name: multiply(Jet([value], 0).watched(roundings), 1.0) for name, value in given.items()}
    try:
        found = function(values)
    except LimitError:
        raise
    except GradcliError:
        return None
    return (found.inner, perturbed_of(found).inner) if isinstance(found, Jet) else None
