"""A second run of a computation, in which the result of every operation is off by a few units in its last place: how far
its result is from that of the first is what rounding errors amount to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli.errors import GradcliError, LimitError
from gradcli.kinds.rounding import Roundings
from gradcli.kinds.taylor import Jet, shadow_of
from gradcli.primitives.arithmetic import multiply


def run_twice(function: Callable[[Mapping[str, Any]], Any], given: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The results of a function of values by name in both runs; None where it has none, or they do not hang on the values."""
    roundings = Roundings()
    # The product is off, as the values themselves are.
    values = {name: multiply(Jet([value], 0).watched(roundings), 1.0) for name, value in given.items()}
    try:
        found = function(values)
    except LimitError:
        raise
    except GradcliError:
        return None
    return (found.inner, shadow_of(found).inner) if isinstance(found, Jet) else None
