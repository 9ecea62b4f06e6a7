"""The quantities of a measurement: estimates, standard uncertainties, degrees of freedom and correlations of the
inputs, and the expanded uncertainty of results (GUM, annex G), which may be the parts of a complex value."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.errors import BindingError, did_you_mean
from gradcli.evaluation.nested_lists import Read
from gradcli.language.named_values import with_named_value
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree
from gradcli.models.complex_inputs import parts_of, with_parts
from gradcli.models.packing import Packing
from gradcli.models.uncertainty.assigned_distributions import AssignedDistribution, distribution, is_distribution
from gradcli.models.uncertainty.uncertain_values import (
    HINT,
    in_floats,
    is_uncertain,
    read_uncertain,
    uncertain_of_value,
)
from gradcli.named_tuples import NamedTuple

# Rounding error of the eigenvalues of a correlation matrix, relative to its size: they may be less than 0 by so much.
_ROUNDING = 1e-12
# The results that share a covariance matrix, and those that are functions of them.
_COMPONENTS, _POLAR = ("real", "imag"), ("abs", "angle")
# Relative rounding error of the Welch-Satterthwaite formula that must not cost a whole degree of freedom.
_DOF_ROUNDING = 1e-9


class Quantity(NamedTuple):
    """An uncertain input: its estimate and the standard uncertainty of each element, of the same shape, as in
    `Uncertain`.

    `correlation` is the matrix of the flattened elements, of complex ones that of all real parts and then all imaginary
    ones; it is None where they are independent. `distribution` is the one
    that is assigned; where it is None, the input is normal, or has Student's distribution where `dof` is finite.
    """

    value: Any
    u: Any
    dof: float = math.inf
    distribution: AssignedDistribution | None = None
    correlation: Any = None


class CorrelatedInputs(NamedTuple):
    """Numbers that are correlated with one another: their indices, and a factor L of their correlation matrix L Lᵀ."""

    places: Any
    factor: Any


class Quantities(NamedTuple):
    """The uncertain inputs as one vector of n numbers, in the order of `packing`, and the exact ones by name.

    All vectors have the shape `[n]`. `distributions` are by index; `blocks` are groups of correlated numbers; and
    `correlations` are those of each number with others, by their indices. The inputs in `complex_names` have two names
    in the packing, those of their parts.
    """

    packing: Packing
    exact: Mapping[str, Any]
    mean: Any
    u: Any
    dof: Any
    distributions: Mapping[int, AssignedDistribution]
    blocks: Sequence[CorrelatedInputs]
    correlations: Mapping[int, Mapping[int, float]]
    complex_names: Sequence[str] = ()

    def scaled(self, sensitivities: Any) -> Any:
        """Convert sensitivities `[…, n]` by the inputs to those by the independent quantities of variance 1 that the
        inputs are linear combinations of. The sum of their squares is the variance."""
        found = sensitivities * self.u
        for block in self.blocks:
            found[..., block.places] = found[..., block.places] @ block.factor
        return found

    @property
    def named_exactly(self) -> dict[str, Any]:
        """The values of the inputs whose uncertainty is 0 in all elements, by name."""
        np = arrays.numpy_namespace()
        uncertainties = self.packing.named(self.u)
        return {name: value for name, value in self.packing.named(self.mean).items() if not np.any(uncertainties[name])}

    def without_exact(self, sensitivities: Any, value: Any) -> Any:
        """Sensitivities `[…, n]` of results `[…]`, set to 0 for inputs that are known exactly, which contribute nothing
        even where the derivative does not exist."""
        np = arrays.numpy_namespace()
        return np.where((self.u == 0) & np.isfinite(value)[..., None], 0.0, sensitivities)

    def deviations(self, independent: Any) -> Any:
        """The deviations `[…, n]` of the inputs for values of the independent quantities of variance 1."""
        found = independent * self.u
        for block in self.blocks:
            found[..., block.places] = (independent[..., block.places] @ block.factor.T) * self.u[block.places]
        return found

    def moments(self) -> tuple[Any, Any]:
        """The skewness and the excess kurtosis, `[n]` each, of the independent quantities: those of assigned
        distributions, and 0, as for a normal distribution, for other inputs and for correlated ones."""
        np = arrays.numpy_namespace()
        found = np.zeros((2, self.packing.size))
        for place, assigned in self.distributions.items():
            found[:, place] = assigned.shape
        for block in self.blocks:
            found[:, block.places] = 0.0
        return found[0], found[1]


def quantity(text: str, offset: int, whole: str, read: Read) -> Quantity:
    """The quantity of a text that starts at `offset` of `whole`. Raises BindingError, with the place, where it cannot
    be read."""
    if is_distribution(text):
        assigned = distribution(text, offset, whole, read)
        return Quantity(assigned.mean, assigned.u, distribution=assigned)
    return Quantity(*read_uncertain(text, offset, whole, read))


def quantity_of_observations(observations: Any, name: str) -> tuple[Quantity, int]:
    """A quantity from observations, and the number of rows left out because a number is missing.

    From n observations it is their mean and its standard uncertainty, with n - 1 degrees of freedom (GUM, 4.2); from a
    table `[n, k]` the means of its columns, with their correlations (GUM, 5.2.3), and from complex observations those
    of both parts.

    Raises BindingError where there are fewer than 2 rows, and for an infinite number.
    """
    np = arrays.numpy_namespace()
    table = np.asarray(observations)
    shape, is_complex = table.shape[1:], arrays.is_complex(table)
    if table.ndim not in (1, 2):
        raise BindingError(
            f"'{name}' is no observations, which are a column or a table", hint=f"write {name}=@data.csv:column"
        )
    rows = len(table)
    if is_complex:
        # A column for each part: of complex numbers the real parts first.
        table = np.concatenate([part.reshape(rows, -1) for part in parts_of(table)], 1)
    table = np.asarray(table, "float64")
    table = table[~np.isnan(table if table.ndim == 2 else table[:, None]).any(1)]
    count = len(table)
    if count < 2:
        raise BindingError(
            f"'{name}' has {'one observation' if count else 'no observations'}, whose scatter says nothing",
            hint=f"say its uncertainty, as in {name}=5.0±0.1",
        )
    if not np.isfinite(table).all():
        raise BindingError(f"'{name}' has an infinite observation", hint="leave its row out")
    mean = table.mean(0)
    u = table.std(0, ddof=1) / math.sqrt(count)
    correlation = None
    if table.ndim == 2:
        deviations = table - mean
        norms = np.sqrt((deviations**2).sum(0))
        scaled = deviations / np.where(norms > 0, norms, 1.0)
        correlation = scaled.T @ scaled
        np.fill_diagonal(correlation, 1.0)
    if is_complex:
        mean, u = (real.reshape(shape) + 1j * imag.reshape(shape) for real, imag in map(np.split, (mean, u), (2, 2)))
    return Quantity(mean[()], u[()], float(count - 1), correlation=correlation), rows - count


def input_of_text(text: str, offset: int, whole: str) -> Any:
    """The input of a text that starts at `offset` of `whole`: a Quantity where it has an uncertainty, else an array.
    Raises what `quantity` raises, and for an expression what its evaluation raises."""
    read = in_floats(whole)
    said = is_distribution(text) or is_uncertain(text)
    return quantity(text, offset, whole, read) if said else read(text, offset)


def input_of_value(value: Any, name: str) -> Any:
    """The input of a Python value: a Quantity for a text, or a tuple of value and uncertainty, else an array. Raises
    BindingError for other values."""
    if isinstance(value, Quantity):
        return value
    if isinstance(value, str):
        return input_of_text(value, 0, value)
    found = uncertain_of_value(value, name)
    if found is not None:
        return Quantity(*found)
    try:
        read = arrays.asarray(value)
        return arrays.asarray(read, "complex128" if arrays.is_complex(read) else "float64")
    except (TypeError, ValueError, OverflowError):
        raise BindingError(f"'{name}' is neither numbers nor an uncertain value", hint=HINT) from None


def quantities(
    values: Mapping[str, Any], correlation: Mapping[tuple[str, str], float], dof: Mapping[str, float]
) -> Quantities:
    """The inputs of a propagation, with the correlations of pairs and the degrees of freedom of names, which are those
    of both parts of a complex input. The labels of a pair are those of `packing`; spaces in them are ignored.

    Raises BindingError for names that have no uncertainty, for invalid correlations and for those that contradict each
    other, and for degrees of freedom that are not positive.
    """
    np = arrays.numpy_namespace()
    uncertain = {name: value for name, value in values.items() if isinstance(value, Quantity)}
    exact = {name: value for name, value in values.items() if name not in uncertain}
    complex_names = [name for name, each in uncertain.items() if arrays.is_complex(each.value)]
    packing = Packing.of(with_parts({name: each.value for name, each in uncertain.items()}, complex_names))
    places = packing.places()
    for name in complex_names:
        real, imag = (places[label] for label in names_of_parts(name))
        places[name] = slice(real.start, imag.stop)
    freedom, distributions = np.full(packing.size, math.inf), {}
    for name, each in uncertain.items():
        freedom[places[name]] = each.dof
        if each.distribution is not None:
            distributions[places[name].start] = each.distribution
    for name, number in dof.items():
        freedom[places[_known(name, places, "--dof")]] = _freedom(number, name)
    matrix = _Correlations(packing, complex_names)
    for name, each in uncertain.items():
        if each.correlation is not None:
            matrix.put_block(places[name].start, each.correlation)
    for (first, second), number in correlation.items():
        matrix.put(first, second, number)
    mean = packing.flat(with_parts({name: each.value for name, each in uncertain.items()}, complex_names))
    u = packing.flat(with_parts({name: each.u for name, each in uncertain.items()}, complex_names))
    return Quantities(packing, exact, mean, u, freedom, distributions, matrix.blocks(), matrix.of, complex_names)


def _known(name: str, names: Mapping[str, Any], what: str) -> str:
    if name not in names:
        hint = did_you_mean(name, names, f"there are {', '.join(names)}" if names else "write x=5.0±0.1")
        raise BindingError(f"{what} names '{name}', which has no uncertainty", hint=hint)
    return name


def _freedom(number: float, name: str) -> float:
    if not number > 0:
        raise BindingError(f"the degrees of freedom of '{name}' are more than 0", hint=f"--dof {name}=9")
    return number


class _Correlations:
    """Collects the correlations of pairs of numbers."""

    def __init__(self, packing: Packing, complex_names: Collection[str]) -> None:
        self._complex_names = complex_names
        self._labels = {label.replace(" ", ""): place for place, label in enumerate(packing.labels())}
        self.of: dict[int, dict[int, float]] = {}

    def put(self, first: str, second: str, number: float) -> None:
        for name in (first, second):
            if name in self._complex_names:
                raise BindingError(
                    f"--correlation names '{name}', which is complex",
                    hint=f"its parts {' and '.join(names_of_parts(name))} have correlations",
                )
        places = [
            self._labels[_known(label.replace(" ", ""), self._labels, "--correlation")] for label in (first, second)
        ]
        what = f"the correlation of '{first}' and '{second}'"
        if places[0] == places[1]:
            raise BindingError(f"{what} is that of a quantity with itself", hint="which is 1: leave it out")
        if places[1] in self.of.get(places[0], {}):
            raise BindingError(f"{what} is given twice", hint="leave out one of them")
        if not -1 <= number <= 1:
            raise BindingError(f"{what} is {number:g}", hint="it lies between -1 and 1")
        self._put(places[0], places[1], number)

    def put_block(self, start: int, matrix: Any) -> None:
        for i, row in enumerate(matrix.tolist()):
            for j, number in enumerate(row[:i]):
                self._put(start + i, start + j, number)

    def _put(self, first: int, second: int, number: float) -> None:
        self.of.setdefault(first, {})[second] = number
        self.of.setdefault(second, {})[first] = number

    def blocks(self) -> list[CorrelatedInputs]:
        """The connected groups of correlated numbers. Raises BindingError where a correlation matrix is not positive
        semidefinite."""
        blocks, left = [], dict.fromkeys(sorted(self.of))
        while left:
            found = [next(iter(left))]
            for place in found:
                left.pop(place, None)
                found += [other for other, r in self.of[place].items() if r and other in left and other not in found]
            if len(found) > 1:
                blocks.append(self._block(sorted(found)))
        return blocks

    def _block(self, places: list[int]) -> CorrelatedInputs:
        np = arrays.numpy_namespace()
        matrix = np.asarray([[1.0 if i == j else self.of[i].get(j, 0.0) for j in places] for i in places])
        smallest = np.linalg.eigvalsh(matrix)[0]
        if smallest < -_ROUNDING * len(places):
            names = [label for label, place in self._labels.items() if place in places]
            raise BindingError(
                f"the correlations of {', '.join(names)} contradict each other: their matrix has the eigenvalue "
                f"{smallest:.3g}",
                hint="no quantities have a correlation matrix with an eigenvalue below 0",
            )
        return CorrelatedInputs(np.asarray(places), triangular_factor(matrix))


def triangular_factor(matrix: Any) -> Any:
    """A lower triangular L with L Lᵀ the positive semidefinite matrix. Columns are 0 where it is singular, so that
    fully correlated quantities cancel without rounding errors."""
    np = arrays.numpy_namespace()
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        rest = matrix[j:, j] - factor[j:, :j] @ factor[j, :j]
        if rest[0] > _ROUNDING * len(matrix):
            factor[j:, j] = rest / math.sqrt(rest[0])
    return factor


def program_of_parts(module: tree.Module) -> tree.Module:
    """The program whose value has the real and the imaginary part, the modulus and the angle of each element of that of
    `module`, one after the other. Raises EvaluationError where the program ends with a block."""
    statements, name = with_named_value(module)
    last = module.body[-1]

    def call(function: str, argument: tree.Expression) -> tree.Expression:
        return tree.Call(last.span, function, last.span, None, (argument,), (), stable_expressions.MODULE)

    parts = [call("ravel", call(part, tree.Name(last.span, name, ""))) for part in (*_COMPONENTS, *_POLAR)]
    value = call("concat", tree.List(last.span, tuple(parts)))
    return tree.Module(module.span, module.source, (*statements, tree.Evaluate(last.span, value)))


def labels_of_parts(labels: Sequence[str], *, several: bool) -> list[str]:
    """The labels of the results of `program_of_parts`, in their order, by those of the complex values."""
    return [f"{part}({label})" if several else part for part in (*_COMPONENTS, *_POLAR) for label in labels]


def count_of_parts(results: int) -> int:
    """The number of results that are real and imaginary parts, which come first."""
    return results * len(_COMPONENTS) // len((*_COMPONENTS, *_POLAR))


def polar_results_at_zero(results: Sequence[Any]) -> list[int]:
    """The indices of modulus and angle of 0, of which there is no linear propagation: it would give them the
    uncertainty 0."""
    count = len(results) // len((*_COMPONENTS, *_POLAR))
    zeros = [i for i in range(count) if bool(results[2 * count + i] == 0)]
    return [place * count + i for place in (2, 3) for i in zeros]


def without_polar_at_zero(sensitivities: Any, value: Any) -> Any:
    """The sensitivities `[m, n]` of the results `[m]`, nan for modulus and angle of 0."""
    np = arrays.numpy_namespace()
    nowhere = np.zeros(len(value), "bool")
    nowhere[polar_results_at_zero(value)] = True
    return np.where(nowhere[:, None], np.nan, sensitivities)


def effective_dofs(quantities: Quantities, scaled: Any) -> list[float]:
    """The effective degrees of freedom of each result by the Welch-Satterthwaite formula (GUM, G.4.1), from the
    sensitivities `[m, n]` by independent quantities of variance 1.

    Inputs that are correlated with one another are one term of the formula, with the least degrees of freedom among
    them. The result is infinite where no term has finite ones.
    """
    return [_effective_dof(quantities, (row / scale_of(row)) ** 2) for row in scaled]


def scale_of(numbers: Any) -> float:
    """The largest absolute value, as a scale that keeps squares in the range of floats; 1 where it is 0 or not
    finite."""
    largest = float(abs(numbers).max(initial=0.0))
    return largest if 0 < largest < math.inf else 1.0


def norm(numbers: Any) -> float:
    """The square root of the sum of squares, without overflow or underflow."""
    size = scale_of(numbers)
    return size * math.sqrt(((numbers / size) ** 2).sum())


def _effective_dof(quantities: Quantities, squares: Any) -> float:
    total = float(squares.sum())
    if not total > 0:
        return math.nan if math.isnan(total) else math.inf
    weights = squares / total
    inverse = 0.0
    for block in quantities.blocks:
        inverse += float(weights[block.places].sum()) ** 2 / float(quantities.dof[block.places].min())
        weights[block.places] = 0.0
    inverse += float((weights**2 / quantities.dof).sum())
    return 1.0 / inverse if inverse > 0 else math.inf


def coverage_factor(level: float, dof: float) -> float:
    """The two-sided quantile of Student's t distribution at a level, of the normal distribution where `dof` is
    infinite; nan where `dof` is."""
    from scipy import special

    if math.isnan(dof):
        return dof
    if math.isinf(dof):
        return float(special.ndtri((1 + level) / 2))
    return float(special.stdtrit(whole_dof(dof), (1 + level) / 2))


def whole_dof(dof: float) -> float:
    """Finite degrees of freedom, rounded down to a whole number where they are at least 1 (GUM, G.4.1)."""
    return math.floor(dof * (1 + _DOF_ROUNDING)) or dof
