"""Tolerance analysis: the limits of a result whose inputs lie between limits, in the worst case and as root of the sum of
squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.evaluation.constant_expressions import constant
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.assigned_distributions import Distribution
from gradcli.models.uncertainty.coverage import norm
from gradcli.models.uncertainty.input_quantities import Quantities

# Standard uncertainty of a rectangular distribution, in half-widths (GUM, 4.3.7).
_OF_HALF_WIDTH = 1 / math.sqrt(3)


@dataclass(frozen=True)
class ToleranceLimits:
    """The limits of a result for all values of the inputs between theirs.

    `worst_case` are proved bounds, as decimals; `reached` are values that it is known to take, where these bounds are
    noticeably wider. `linear` is the value ± the sum of |sensitivity| times the half-width of each input, and `rss` ± the
    root of the sum of their squares.
    """

    worst_case: tuple[str, str]
    reached: tuple[str, str] | None
    linear: tuple[float, float]
    rss: tuple[float, float]


def between_limits(quantities: Quantities) -> Quantities:
    """The same inputs, where what was given as an uncertainty is half the distance of limits, between which each value is
    equally likely (GUM, 4.3.7).

    Raises BindingError for correlated inputs, for observations, and for distributions without limits.
    """
    np, labels = arrays.numpy_namespace(), quantities.packing.labels()
    for block in quantities.blocks:
        raise BindingError(
            f"'{labels[int(block.places[0])]}' is correlated, and limits are those of independent inputs",
            hint="leave out the correlation",
        )
    u, distributions = quantities.u.copy(), dict(quantities.distributions)
    for place, half in enumerate(quantities.u.tolist()):
        if place in distributions:
            if not np.isfinite(distributions[place].quantile(np.array([0.0, 1.0]))).all():
                raise _without_limits(labels[place], f"{distributions[place].name} and")
        elif math.isfinite(quantities.dof[place]):
            raise _without_limits(labels[place], "observations, which")
        elif half > 0:
            low, high = (float(end) for end in _decimal_ends(quantities.mean[place], half))
            distributions[place] = Distribution("uniform", (low, high))
            u[place] = half * _OF_HALF_WIDTH
    return quantities._replace(u=u, distributions=distributions)


def _without_limits(label: str, what: str) -> BindingError:
    return BindingError(
        f"'{label}' is {what} has no limits", hint=f"write {label}=5.0±0.1, or {label}=~uniform(4.9, 5.1)"
    )


def _decimal_ends(middle: float, half: float) -> tuple[Fraction, Fraction]:
    """The ends of middle ± half, as the decimals that were typed."""
    first, second = Fraction(repr(float(middle))), Fraction(repr(float(half)))
    return first - second, first + second


def tolerance_limits(
    module: Module, quantities: Quantities, value: Any, sensitivities: Any
) -> Sequence[ToleranceLimits]:
    """The limits of each of m results `[m]`, whose derivatives by the inputs are `[m, n]`.

    `quantities` are those of `between_limits`. Raises BackendError without python-flint, and what evaluating the program
    over intervals raises.
    """
    np = arrays.numpy_namespace()
    ends = np.array([_ends(quantities, place) for place in range(quantities.packing.size)], "float64")
    halves = (ends[:, 1] - ends[:, 0]) / 2
    bounds, reached = _worst_case(module, quantities, ends)
    found = []
    for place, (number, slopes) in enumerate(zip(value.tolist(), sensitivities)):
        terms = quantities.without_exact(slopes, np.asarray(number)) * halves
        whole, root = float(np.abs(terms).sum()), norm(terms)
        found.append(
            ToleranceLimits(bounds[place], reached, (number - whole, number + whole), (number - root, number + root))
        )
    return found


def _ends(quantities: Quantities, place: int) -> Any:
    np = arrays.numpy_namespace()
    assigned = quantities.distributions.get(place)
    if assigned is None:
        return quantities.mean[place], quantities.mean[place]
    return assigned.quantile(np.array([0.0, 1.0]))


def _worst_case(module: Module, quantities: Quantities, ends: Any) -> tuple[list[Any], Any]:
    """The bounds of each result, as pairs of texts, and what a single one is known to reach, or None."""
    from gradcli.proofs import digits

    with digits.computing():
        # Imported here, so that FLINT is needed only where limits are asked for.
        from flint import fmpq

        from gradcli.arrays.flint.intervals import Bounds
        from gradcli.proofs.enclosed import enclose
        from gradcli.proofs.interval_inputs import Intervals

        def fraction(number: float) -> Any:
            exact = Fraction(repr(float(number)))
            return fmpq(exact.numerator, exact.denominator)

        parts = [Bounds(fraction(low), fraction(high)) for low, high in ends]
        shapes = quantities.packing.shapes
        boxes = {
            name: Intervals(shapes[name], tuple(parts[place])) for name, place in quantities.packing.places().items()
        }
        fixed = {name: constant(_text(number), "float64", name) for name, number in quantities.exact.items()}
        found = enclose(module, {**fixed, **boxes}, (), order=0)
    reached = found.reached and (found.reached.low, found.reached.high)
    return [(each.low, each.high) for each in _flat(found.value)], reached


def _text(value: Any) -> str:
    np = arrays.numpy_namespace()
    return repr(np.asarray(value).tolist())


def _flat(value: Any) -> list[Any]:
    return [part for each in value for part in _flat(each)] if isinstance(value, list) else [value]
