"""Propagates uncertainties through a program: the law of propagation of the GUM (JCGM 100:2008), and Monte Carlo (JCGM
101:2008).

The sensitivity coefficients are exact derivatives.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, ShapeError, UsageError, as_bool, expect
from gradcli.evaluation import session
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.diagnose import Warning
from gradcli.evaluation.nested_lists import items
from gradcli.io.text_tables import Table
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_DIGITS, MAX_ELEMENTS, MAX_PRECISION, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.complex_inputs import real_inputs
from gradcli.models.packing import Packing
from gradcli.models.results import MAY_BE_NULL, Reported, Sampling
from gradcli.models.uncertainty.assigned_distributions import AssignedDistribution
from gradcli.models.uncertainty.global_sensitivity import SensitivityRun, morris_effects, sobol_indices
from gradcli.models.uncertainty.input_quantities import (
    Quantities,
    count_of_parts,
    coverage_factor,
    effective_dofs,
    input_of_value,
    labels_of_parts,
    norm,
    program_of_parts,
    quantities,
    scale_of,
    without_polar_at_zero,
)
from gradcli.models.uncertainty.monte_carlo import AdaptiveSampling, Drawn, InputSampler, MonteCarlo, summary
from gradcli.models.uncertainty.propagation_tables import check_budget_path, save_budget
from gradcli.models.uncertainty.propagation_warnings import (
    left_out,
    nonlinear,
    not_validated,
    rounded,
    second_order,
    singular,
    singularities,
    steps,
    without_deviation,
)
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits as proved_digits

# A coverage interval of fewer draws is meaningless.
FEWEST_SAMPLES = 100
# The most digits of an uncertainty by adaptive sampling.
_MOST_DIGITS = 3
# Estimated work of an entry of a budget, in array elements.
_ENTRY = 32
# Standard uncertainty of a rectangular distribution, in half-widths (GUM, 4.3.7).
_OF_HALF_WIDTH = 1 / math.sqrt(3)


@dataclass(frozen=True)
class Contribution:
    """The contribution of an input to a result: its estimate `value`, standard uncertainty and degrees of freedom; the
    `sensitivity`, which is the derivative of the result; the `contribution` to the uncertainty; and its `share` of the
    variance, with covariances divided equally between both inputs."""

    name: str
    value: float
    u: float
    dof: float
    sensitivity: float
    contribution: float
    share: float


@dataclass(frozen=True)
class Propagation(Reported):
    """A result and its combined standard uncertainty; with several results each attribute is a mapping by name.

    Those of a complex value are its `real` and `imag`, and `abs` and `angle`, whose uncertainties follow from these.
    `dof` are the effective degrees of freedom, and `interval` is the value ± k times its uncertainty. `second_order`
    and `monte_carlo` are the results to the next order and by sampling; `limits` are those of a tolerance analysis; `sobol` and `morris` are the Sobol' indices and
    the elementary effects of the inputs. `covariance` `[m, m]` is that of several
    results, in their order, and of a complex value that of both parts. `warnings` say where the linear propagation cannot be trusted.
    """

    value: Any
    u: Any
    relative: Any
    budget: Any
    dof: Any
    k: Any
    level: float
    interval: Any
    second_order: Any = field(default=None, metadata=MAY_BE_NULL)
    monte_carlo: Any = field(default=None, metadata=MAY_BE_NULL)
    limits: Any = None
    sobol: Any = None
    morris: Any = None
    covariance: Any = None
    warnings: Sequence[Any] | None = None

    def report(self) -> Sequence[Table]:
        from gradcli.models.uncertainty import propagation_tables

        first = next(iter(self.u.values())) if isinstance(self.u, dict) else self.u
        return propagation_tables.tables(self, in_digits=isinstance(first, str))


def propagate(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    correlation: Mapping[str | tuple[str, str], float] | None = None,
    dof: Mapping[str, float] | None = None,
    level: float = 0.95,
    samples: float | None = None,
    seed: int = 0,
    shortest: bool = False,
    adaptive: int | None = None,
    sobol: bool = False,
    morris: bool = False,
    limits: bool = False,
    budget: str | os.PathLike[str] | None = None,
    digits: int | None = None,
    max_precision: int = MAX_PRECISION,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Propagation:
    """The value of a program of uncertain inputs, with its combined standard uncertainty, as a `Propagation`.

    An input is a text as in the command, "5.0±0.1", "5.0(1)" or "~uniform(4.9, 5.1)", a tuple of value and standard
    uncertainty, which may be arrays, or a number or an array without uncertainty. Those of a complex input are complex:
    `z=(1+2j, 0.1+0.3j)` has the uncertainties 0.1 of `real(z)` and 0.3 of `imag(z)`. `correlation` has pairs as keys,
    `{"a,b": 0.3}` or `{("a", "b[0]"): 0.3}`; `dof` are the degrees of freedom by name. `level` is that of the coverage
    intervals. With `samples` the distributions are also propagated, by that many draws from the generator of `seed`;
    `shortest` requests the shortest interval of these; `adaptive` draws until that many digits of the uncertainty are
    stable, instead of a number of samples. `sobol` requests the first-order and total Sobol' indices of
    independent inputs, and `morris` their elementary effects, with at most `samples` evaluations each.

    With `limits`, what stands behind ± are limits, between which all values are equally likely, and the result has its
    limits in the worst case, proved by interval arithmetic, and as root of the sum of squares.

    `budget` is the path of a table to write, as CSV, LaTeX (.tex), JSON lines, Parquet or Arrow by the ending.

    With `digits` numbers are texts of that many proved digits, and the decimals in texts of inputs are exact; then there
    is no second order.

    Raises BindingError for inputs that cannot be read, and where none is uncertain; UsageError for invalid options;
    BackendError for digits without python-flint; and what evaluating the program raises.
    """
    expect(program, str, "a program is a text")
    if correlation is not None:
        expect(correlation, Mapping, "'correlation' is a mapping of pairs")
    samples = None if samples is None else checked_arguments.number(samples, "'samples'")
    asked = PropagateRequest(
        {key: checked_arguments.number(number, "a correlation") for key, number in (correlation or {}).items()},
        {
            name: checked_arguments.number(number, f"the 'dof' of '{name}'")
            for name, number in checked_arguments.mapping_by_name(dof, "'dof'").items()
        },
        checked_arguments.number(level, "'level'"),
        samples,
        seed,
        as_bool(shortest, "shortest"),
        digits,
        max_precision,
        sobol=as_bool(sobol, "sobol"),
        morris=as_bool(morris, "morris"),
        limits=as_bool(limits, "limits"),
        adaptive=None if adaptive is None else checked_arguments.integer(adaptive, "'adaptive'", 1),
    )
    path = checked_arguments.path(budget, "'budget'")
    check_budget_path(path)
    found = propagated(
        program, {**checked_arguments.mapping_by_name(values, "'values'"), **named}, asked, (max_steps, max_elements)
    ).propagation
    if path is not None:
        save_budget(found, path)
    return found


class PropagateRequest(NamedTuple):
    """The options of `propagate`; `watch` is called with the number of samples drawn so far."""

    correlation: Mapping[str | tuple[str, str], float]
    dof: Mapping[str, float]
    level: float = 0.95
    samples: float | None = None
    seed: int = 0
    shortest: bool = False
    digits: int | None = None
    max_precision: int = MAX_PRECISION
    watch: Callable[[Sampling], object] = lambda _: None
    sobol: bool = False
    morris: bool = False
    adaptive: int | None = None
    limits: bool = False


class PropagationAnswer(NamedTuple):
    """A propagation, and whether each of its numbers has the requested digits."""

    propagation: Propagation
    complete: bool


def propagated(
    program: str, values: Mapping[str, Any], asked: PropagateRequest, most: tuple[int, int]
) -> PropagationAnswer:
    """Propagate as `propagate` does; `most` are the limits of steps and elements."""
    _check(asked)
    limits.check(max_steps=most[0], max_elements=most[1])
    with limits.within(*most), arrays.using_dtype("float64"):
        module = parse_charged(program)
        inputs = _inputs(module, values, asked)
        with arrays.quiet(), real_inputs(module, inputs.complex_names) as of_parts:
            linear = _Linear.of(of_parts, inputs)
            module = linear.module
            found = _in_floats(module, inputs, linear, asked, most)
            if asked.digits is None:
                return PropagationAnswer(found, True)
            labels = linear.labels if linear.several else None
            with proved_digits.computing():
                # Imported here, so that FLINT is needed only where proved digits are requested.
                from gradcli.models.uncertainty.proved_uncertainties import in_digits

                return PropagationAnswer(
                    *in_digits(module, values, inputs, found, labels, asked.digits, asked.max_precision)
                )


def _check(asked: PropagateRequest) -> None:
    """Raise UsageError for an invalid level, number of samples, seed or number of digits."""
    if type(asked.seed) is not int or asked.seed < 0:
        raise UsageError("'seed' is a whole number from 0 on")
    limits.check(max_precision=asked.max_precision)
    if not 0 < asked.level < 1:
        raise UsageError(f"there is no level {asked.level!r}", hint="it lies between 0 and 1: 0.95")
    if asked.samples is not None:
        whole_samples(asked.samples)
    if asked.adaptive is not None and asked.samples is not None:
        raise UsageError(
            "a number of samples and adaptive sampling contradict each other", hint="leave out one of them"
        )
    if asked.adaptive is not None and asked.adaptive > _MOST_DIGITS:
        raise UsageError(
            f"{asked.adaptive} digits are too many for samples",
            hint=f"at most {_MOST_DIGITS}: each takes 100 times as many",
        )
    if asked.digits is None:
        return
    if type(asked.digits) is not int or not 1 <= asked.digits <= min(MAX_DIGITS, asked.max_precision):
        raise UsageError(f"'digits' is a whole number from 1 to {MAX_DIGITS:,}, and at most 'max_precision'")
    if asked.limits:
        raise UsageError("'digits' and 'limits' contradict each other", hint="leave out one of them")
    if asked.samples is not None or asked.adaptive is not None or asked.sobol or asked.morris:
        raise UsageError("digits are not proved of samples", hint="leave out one of them")


def _in_floats(
    module: tree.Module, inputs: Quantities, linear: _Linear, asked: PropagateRequest, most: tuple[int, int]
) -> Propagation:
    met = singularities(module, inputs, linear.scaled, most) if linear.is_finite else []
    # Moments that do not exist have no expansion.
    is_expandable = linear.is_expandable and all(each.kind == "jump" for each in met)
    second = second_order(module, inputs, linear.value, linear.scaled) if is_expandable else None
    factors = [(found, coverage_factor(asked.level, found)) for found in effective_dofs(inputs, linear.scaled)]
    numbers = [*zip(linear.value.tolist(), linear.u.tolist())]
    intervals = [(value - k * u, value + k * u) for (value, u), (_, k) in zip(numbers, factors)]
    messages = nonlinear(linear.labels, numbers, second or ())
    # Proved digits are right however small the uncertainty is.
    messages += [] if asked.digits is not None else rounded(linear.labels, numbers, module, inputs)
    sampled = _sampled(module, inputs, asked, most)
    if sampled is not None or asked.sobol:
        messages += without_deviation(inputs)
    if sampled is not None:
        messages += left_out(sampled.draws, sampled.number)
        messages += not_validated(linear.labels, numbers, intervals, sampled.summaries)
    run = SensitivityRun(
        module, inputs, None if asked.samples is None else whole_samples(asked.samples), asked.seed, most, asked.watch
    )
    limits.charge(_ENTRY * linear.scaled.size)
    budgets = [_budget(inputs, *each) for each in zip(linear.value, linear.sensitivities, linear.scaled)]
    warnings = [
        *_warnings_of_singularities(module, inputs, linear, met, sampled is not None),
        *(Warning(code, "propagation", of, module.body[-1].span, text) for code, of, text in messages),
    ]
    scaled = linear.scaled[: linear.varying]

    def named(parts: Sequence[Any]) -> Any:
        return dict(zip(linear.labels, parts)) if linear.several else parts[0]

    return Propagation(
        value=named([value for value, _ in numbers]),
        u=named([u for _, u in numbers]),
        relative=named([u / abs(value) if value else math.inf if u else 0.0 for value, u in numbers]),
        budget=named(budgets),
        dof=named([found for found, _ in factors]),
        k=named([k for _, k in factors]),
        level=asked.level,
        interval=named(intervals),
        second_order=None if second is None else named(second),
        monte_carlo=None if sampled is None else named([found for found, _ in sampled.summaries]),
        limits=named(_tolerance_limits(module, inputs, linear.value, linear.sensitivities)) if asked.limits else None,
        sobol=named(sobol_indices(run, asked.level)) if asked.sobol else None,
        morris=named(morris_effects(run)) if asked.morris else None,
        covariance=scaled @ scaled.T if linear.several else None,
        warnings=tuple(warnings) or None,
    )


def _warnings_of_singularities(
    module: tree.Module, inputs: Quantities, linear: _Linear, met: Sequence[Any], is_sampled: bool
) -> Sequence[Warning]:
    """The warnings of the linear propagation and those of steps and singularities within the uncertainties, each place
    reported once."""
    # Draws show steps themselves, and an estimate at a jump already has a warning.
    known = {warning.span for warning in linear.warnings}
    unseen = [] if is_sampled else [each for each in steps(module, inputs) if each.span not in known]
    if unseen or any(warning.code == "nonsmooth" for warning in linear.warnings):
        # These warnings already report jumps.
        met = [each for each in met if each.kind != "jump"]
    of = linear.labels[0] if len(linear.labels) == 1 else ""
    return [*linear.warnings, *unseen, *singular(met, of, module.body[-1].span, is_sampled)]


class _Sampled(NamedTuple):
    """The draws of all results, how many were asked of the inputs, and for each result its summary and the numerical
    errors of that."""

    draws: Drawn
    number: int
    summaries: Sequence[tuple[MonteCarlo, tuple[float, float]]]


def _sampled(
    module: tree.Module, inputs: Quantities, asked: PropagateRequest, most: tuple[int, int]
) -> _Sampled | None:
    """The propagation by Monte Carlo, None where it was not asked for."""
    np = arrays.numpy_namespace()

    def summaries(draws: Drawn, count: int) -> list[tuple[MonteCarlo, tuple[float, float]]]:
        return [summary(column, asked.level, asked.shortest, count, asked.seed) for column in draws.values.T]

    if asked.samples is not None:
        count = whole_samples(asked.samples)
        draws = InputSampler(module, inputs, most).draw(count, np.random.default_rng(asked.seed), asked.watch)
        return _Sampled(draws, count, summaries(draws, count))
    if asked.adaptive is None:
        return None
    adaptive = AdaptiveSampling(asked.adaptive, asked.level, asked.shortest, asked.seed)
    draws, tolerances = InputSampler(module, inputs, most).draw_adaptively(adaptive, asked.watch)
    count = len(draws.values) + draws.left_out
    found = [
        (dataclasses.replace(each, digits=asked.adaptive, tolerance=tolerance), errors)
        for (each, errors), tolerance in zip(summaries(draws, count), tolerances)
    ]
    return _Sampled(draws, count, found)


def whole_samples(samples: float) -> int:
    """The number of draws as an int. Raises UsageError where it is not a whole number, or too small for an interval."""
    if isinstance(samples, bool) or samples != samples or math.isinf(samples) or samples != int(samples):
        raise UsageError(f"{samples!r} is no number of samples", hint="write 1e6")
    if samples < FEWEST_SAMPLES:
        raise UsageError(f"{int(samples)} samples are too few", hint=f"there are at least {FEWEST_SAMPLES}")
    return int(samples)


def _inputs(module: tree.Module, values: Mapping[str, Any], asked: PropagateRequest) -> Quantities:
    scope.check_names(module, values)
    scope.check_read(values, module)
    found = quantities(
        {name: input_of_value(value, name) for name, value in values.items()},
        {_pair(key): number for key, number in asked.correlation.items()},
        asked.dof,
    )
    if not found.packing.size:
        raise BindingError("no input has an uncertainty", hint="write x=5.0±0.1, x=5.0(1) or x=~uniform(4.9, 5.1)")
    return _between_limits(found) if asked.limits else found


def _pair(key: str | tuple[str, str]) -> tuple[str, str]:
    """The two labels of a correlation."""
    parts: Any = [part.strip() for _, part in items(key)] if isinstance(key, str) else key
    if type(parts) not in (list, tuple) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise UsageError(f"{key!r} is no pair of inputs", hint="a correlation is of two, as in a,b=0.3")
    return parts[0], parts[1]


class _Linear(NamedTuple):
    """The results of a linear propagation: labels and values of m results, their sensitivities `[m, n]` by the n
    inputs, and `scaled` `[m, n]`, those by independent quantities of variance 1, whose norms are the uncertainties.

    `module` is the program of the results, which for a complex value is that of its parts; the first `varying` results
    have a covariance matrix.
    """

    module: tree.Module
    labels: Sequence[str]
    several: bool
    varying: int
    value: Any
    sensitivities: Any
    scaled: Any
    warnings: Sequence[Warning]

    @classmethod
    def of(cls, module: tree.Module, inputs: Quantities) -> _Linear:
        np = arrays.numpy_namespace()
        names = list(inputs.packing.shapes)
        bindings = {**inputs.exact, **inputs.packing.named(inputs.mean)}
        bindings = {name: input_of_value(bindings[name], name) for name in bindings}
        found = session.run(session.EvaluationRequest(module, bindings, names, jacobian=True))
        labels = _labels(module, arrays.shape(found.value))
        several = bool(arrays.shape(found.value))
        is_complex = arrays.is_complex(found.value)
        if is_complex:
            module, labels = program_of_parts(module), labels_of_parts(labels, several=several)
            found = session.run(session.EvaluationRequest(module, bindings, names, jacobian=True))
        value = np.asarray(found.value, "float64")
        if not value.size:
            raise ShapeError("the value has no elements", span=module.body[-1].span, source=module.source)
        columns = [
            np.zeros((value.size, math.prod(shape)))
            if jacobian is None
            else np.asarray(jacobian, "float64").reshape(value.size, math.prod(shape))
            for shape, jacobian in zip(inputs.packing.shapes.values(), (found.jacobian or {}).values())
        ]
        sensitivities = np.concatenate(columns, 1)
        # A derivative may exist by its formula where the value does not, as for log(-1).
        sensitivities[np.isnan(value.ravel())] = np.nan
        if is_complex:
            sensitivities = without_polar_at_zero(sensitivities, value)
        scaled = inputs.scaled(inputs.without_exact(sensitivities, value.ravel()))
        warnings = found.warnings
        uncertain = [name for name in names if name not in inputs.named_exactly]
        if len(uncertain) < len(names):
            # Warnings of derivatives by exact inputs do not concern the uncertainty.
            warnings = session.run(session.EvaluationRequest(module, bindings, uncertain, jacobian=True)).warnings
        if np.isfinite(scaled).all() and np.isfinite(value).all():
            warnings = [warning for warning in warnings if (warning.code, warning.phase) != ("nonfinite", "backward")]
        varying = count_of_parts(value.size) if is_complex else value.size
        return cls(module, labels, value.ndim > 0, varying, value.ravel(), sensitivities, scaled, warnings)

    @property
    def u(self) -> Any:
        np = arrays.numpy_namespace()
        return np.asarray([norm(row) for row in self.scaled])

    @property
    def is_finite(self) -> bool:
        np = arrays.numpy_namespace()
        return bool(np.isfinite(self.value).all() and np.isfinite(self.scaled).all())

    @property
    def is_expandable(self) -> bool:
        """True if the next order may exist: all numbers are finite, and the estimates are at no kink or jump."""
        return self.is_finite and all(warning.code != "nonsmooth" for warning in self.warnings)


def _labels(module: tree.Module, shape: tuple[int, ...]) -> list[str]:
    """The labels of the results: the names in a list at the end of the program, or the indices."""
    last = module.body[-1]
    if isinstance(last, tree.Evaluate) and isinstance(last.value, tree.List):
        names = [item.id for item in last.value.items if isinstance(item, tree.Name)]
        if shape == (len(last.value.items),) == (len(set(names)),):
            return names
    return Packing({"value": shape}).labels()


def _budget(inputs: Quantities, value: float, sensitivities: Any, scaled: Any) -> list[Contribution]:
    size = scale_of(scaled)
    covariances = inputs.deviations(scaled / size)
    variance = float((scaled / size) @ (scaled / size))
    sizes = inputs.without_exact(sensitivities, value)
    # Without the sign of -0.0.
    shares = (sizes * (covariances / size) / variance if variance else 0.0 * covariances) + 0.0
    contributions = abs(sizes) * inputs.u
    columns = (inputs.mean, inputs.u, inputs.dof, sensitivities, contributions, shares)
    return [Contribution(label, *row) for label, *row in zip(inputs.packing.labels(), *(c.tolist() for c in columns))]


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


def _between_limits(quantities: Quantities) -> Quantities:
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
            distributions[place] = AssignedDistribution("uniform", (low, high))
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


def _tolerance_limits(
    module: Module, quantities: Quantities, value: Any, sensitivities: Any
) -> Sequence[ToleranceLimits]:
    """The limits of each of m results `[m]`, whose derivatives by the inputs are `[m, n]`.

    `quantities` are those of `_between_limits`. Raises BackendError without python-flint, and what evaluating the program
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
