"""Joint distributions of correlated inputs with any distributions: Gaussian copulas.

Correlated normal quantities are transformed, each by itself, to the distributions of the inputs. Their correlations are such
that those of the inputs are the given ones (A. Der Kiureghian and P.-L. Liu, Journal of Engineering Mechanics 112 (1986)
85).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.models.uncertainty.input_quantities import Block, Quantities, triangular_factor
from gradcli.models.uncertainty.marginal_quantiles import quantile

# The largest normal quantity of the trapezoidal rule, and the number of its points.
_REACH, _POINTS = 8.0, 4_001
# Terms of an expansion in Hermite polynomials.
_TERMS = 48
# An attainable correlation may be exceeded by this rounding error.
_ROUNDING = 1e-6
# The most degrees of freedom with which there are no correlations, as the variance is infinite.
_NO_DEVIATION = 2.0


class GaussianCopula(NamedTuple):
    """The copula of correlated inputs: their indices, and a factor of the correlation matrix of the normal quantities."""

    places: Sequence[int]
    factor: Any

    def draw(self, quantities: Quantities, independent: Any) -> Any:
        """The inputs `[rows, k]` for independent standard normal numbers `[rows, k]`."""
        from scipy import special

        np = arrays.numpy_namespace()
        normal = independent @ self.factor.T
        columns = [
            _transformed(quantities, place, normal[:, column], special.ndtr) for column, place in enumerate(self.places)
        ]
        return np.stack(columns, axis=1)


def copulas(quantities: Quantities) -> list[GaussianCopula]:
    """The copulas of the correlated inputs among which there is an assigned distribution that is not normal.

    Raises BindingError for correlations that these distributions cannot have.
    """
    return [_copula(quantities, block) for block in quantities.blocks if _needs_copula(quantities, block)]


def _needs_copula(quantities: Quantities, block: Block) -> bool:
    assigned = [quantities.distributions.get(place) for place in block.places.tolist()]
    return any(each is not None and each.name != "normal" for each in assigned)


def _transformed(quantities: Quantities, place: int, normal: Any, ndtr: Any) -> Any:
    """The input that a standard normal quantity becomes."""
    assigned = quantities.distributions.get(place)
    if (assigned is None or assigned.name == "normal") and math.isinf(_freedom(quantities, place)):
        return quantities.mean[place] + quantities.u[place] * normal
    np = arrays.numpy_namespace()
    # Below 1, at which quantiles may be infinite.
    return quantile(quantities, place, np.minimum(ndtr(normal), 1 - 2.0**-53))


def _freedom(quantities: Quantities, place: int) -> float:
    """The degrees of freedom of the distribution of an input; those of an assigned one tell of its uncertainty."""
    return math.inf if place in quantities.distributions else float(quantities.dof[place])


def _copula(quantities: Quantities, block: Block) -> GaussianCopula:
    np = arrays.numpy_namespace()
    places, labels = block.places.tolist(), quantities.packing.labels()
    for place in places:
        if _freedom(quantities, place) <= _NO_DEVIATION:
            raise BindingError(
                f"'{labels[place]}' has {_freedom(quantities, place):g} degrees of freedom, and no standard deviation "
                "that a correlation could refer to",
                hint="leave out its correlation",
            )
    expansions = {place: _expansion(quantities, place) for place in places}
    matrix = np.eye(len(places))
    for i, first in enumerate(places):
        for j, second in enumerate(places[:i]):
            given = quantities.correlations[first].get(second, 0.0)
            if given:
                names = labels[second], labels[first]
                matrix[i, j] = matrix[j, i] = _of_normal(expansions[first] * expansions[second], given, names)
    if np.linalg.eigvalsh(matrix)[0] < -_ROUNDING:
        raise BindingError(
            f"the correlations of {', '.join(labels[place] for place in places)} have no Gaussian copula with these "
            "distributions",
            hint="smaller correlations have one",
        )
    return GaussianCopula(places, triangular_factor(matrix))


def _expansion(quantities: Quantities, place: int) -> Any:
    """The coefficients of the normalised Hermite polynomials 1, 2, … of the standard normal quantity in an input, as a
    vector of length 1."""
    from scipy import special

    np = arrays.numpy_namespace()
    normal = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-(normal**2) / 2)
    weights /= weights.sum()
    values = _transformed(quantities, place, normal, special.ndtr)
    values = values - weights @ values
    before, polynomial, found = np.ones(_POINTS), normal, []
    for degree in range(1, _TERMS + 1):
        found.append(weights @ (values * polynomial))
        before, polynomial = (
            polynomial,
            (normal * polynomial - math.sqrt(degree) * before) / math.sqrt(degree + 1),
        )
    return np.asarray(found) / math.sqrt(weights @ values**2)


def _of_normal(products: Any, given: float, names: tuple[str, str]) -> float:
    """The correlation of the normal quantities for that of the inputs, which is the power series of it with these
    coefficients (H. O. Lancaster, 1957). Raises BindingError for a correlation that no copula has."""
    from scipy.optimize import brentq

    np = arrays.numpy_namespace()
    powers = np.arange(1, _TERMS + 1)

    def excess(normal: float) -> float:
        return float(products @ normal**powers) - given

    least, most = excess(-1.0) + given, excess(1.0) + given
    if not least - _ROUNDING <= given <= most + _ROUNDING:
        raise BindingError(
            f"'{names[0]}' and '{names[1]}' cannot have the correlation {given:g} with their distributions",
            hint=f"it lies between {least:.3g} and {most:.3g}",
        )
    if not least < given < most:
        return math.copysign(1.0, given)
    return float(brentq(excess, -1.0, 1.0, xtol=1e-14))
