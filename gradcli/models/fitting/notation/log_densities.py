"""The log densities of families as programs of a row, and where the search for their own parameters begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from gradcli.errors import BindingError
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.model_texts import ModelText, rewritten
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name

# Half of log(2*pi), of the density of a normal distribution, and pi.
HALF_LOG_TWO_PI, _PI = 0.9189385332046727, 3.141592653589793

# A negative binomial distribution with a larger theta differs from a Poisson distribution by rounding errors.
_LARGEST_THETA = 1e5


class _Family(NamedTuple):
    """A family: the `formula` of the log density of a response `{y}`, where `{m}` is the model's value; its own
    `parameters`; `near`, the family whose fit is near that of the model; `begin`, which computes the start of the
    parameters from fitted values and responses; and `domain`, in words, with what says which responses lie `inside`."""

    formula: str
    parameters: tuple[str, ...]
    near: str
    begin: Callable[[Any, Any], tuple[float, ...]]
    domain: str
    inside: Callable[[Any], Any]


def _gamma(value: Any, response: Any) -> tuple[float, ...]:
    return (1 / max(float(np.mean(np.square(response / value - 1))), 1e-6),)


def _negbinomial(value: Any, response: Any) -> tuple[float, ...]:
    beyond = float(np.mean(np.square(response - value) - value))
    return (float(np.clip(np.mean(np.square(value)) / max(beyond, 1e-12), 0.05, 100.0)),)


def _zipoisson(value: Any, response: Any) -> tuple[float, ...]:
    beyond = float(np.mean(response == 0) - np.mean(np.exp(-value)))
    return (float(np.clip(beyond, 0.05, 0.9)),)


def _beta(value: Any, response: Any) -> tuple[float, ...]:
    spread = float(np.mean(np.square(response - value)))
    return (float(np.clip(np.mean(value * (1 - value)) / max(spread, 1e-12) - 1, 0.5, 1e6)),)


def _log_spread(value: Any, response: Any) -> float:
    return max(float(np.std(np.log(response / value))), 1e-6)


def _student(value: Any, response: Any) -> tuple[float, ...]:
    return max(float(np.median(np.abs(response - value))), 1e-12), 5.0


def _everywhere(response: Any) -> Any:
    return np.ones(np.shape(response), "bool")


def _positive(response: Any) -> Any:
    return response > 0


# Means are those of R's glm, MASS and betareg; weibull and lognormal are those of survreg, with the model for its
# exp(linear predictor): the scale of a Weibull distribution, and the median of a log-normal one. The standard deviation
# of the sizes of a Weibull distribution on a logarithmic scale is π/sqrt(6) = 1.28 over its shape.
_FAMILIES: Mapping[str, _Family] = {
    "gamma": _Family(
        "shape*log(shape/{m}) + (shape - 1)*log({y}) - shape*{y}/{m} - lgamma(shape)",
        ("shape",),
        "poisson",
        _gamma,
        "above 0",
        _positive,
    ),
    "negbinomial": _Family(
        "lgamma({y} + theta) - lgamma(theta) - lgamma({y} + 1) - theta*log1p({m}/theta) - xlogy({y}, 1 + theta/{m})",
        ("theta",),
        "poisson",
        _negbinomial,
        "a whole number from 0 on",
        lambda response: (response >= 0) & (response == np.floor(response)),
    ),
    # A mean below 0 is impossible, also of a row without events, and so is a probability of 0 events that is below 0, also
    # of a row with some.
    "zipoisson": _Family(
        "where({y} > 0, log1p(-zero) - {m} + xlogy({y}, {m}) - lgamma({y} + 1), log(zero + (1 - zero)*exp(-{m}))) "
        "+ where({m} < 0, log({m}), 0) + where(zero + (1 - zero)*exp(-{m}) < 0, log(zero + (1 - zero)*exp(-{m})), 0)",
        ("zero",),
        "poisson",
        _zipoisson,
        "a whole number from 0 on",
        lambda response: (response >= 0) & (response == np.floor(response)),
    ),
    "beta": _Family(
        "lgamma(phi) - lgamma({m}*phi) - lgamma((1 - {m})*phi) + ({m}*phi - 1)*log({y}) "
        "+ ((1 - {m})*phi - 1)*log1p(-({y}))",
        ("phi",),
        "binomial",
        _beta,
        "between 0 and 1",
        lambda response: (response > 0) & (response < 1),
    ),
    "weibull": _Family(
        "log(shape/{m}) + (shape - 1)*log({y}/{m}) - ({y}/{m})**shape",
        ("shape",),
        "poisson",
        lambda value, response: (1.28 / _log_spread(value, response),),
        "above 0",
        _positive,
    ),
    "lognormal": _Family(
        f"-log({{y}}*sigma) - {HALF_LOG_TWO_PI} - 0.5*(log({{y}}/{{m}})/sigma)**2",
        ("sigma",),
        "poisson",
        lambda value, response: (_log_spread(value, response),),
        "above 0",
        _positive,
    ),
    "student": _Family(
        f"lgamma((dof + 1)/2) - lgamma(dof/2) - 0.5*log({_PI}*dof) - log(scale) "
        "- (dof + 1)/2*log1p((({y} - {m})/scale)**2/dof)",
        ("scale", "dof"),
        "gaussian",
        _student,
        "finite",
        _everywhere,
    ),
}
# Families with a deviance, and the factor of twice the difference of the log-likelihoods in it, a function of the
# family's own parameters: the deviance of a gamma family is that of R, without its dispersion.
_DEVIANCES: Mapping[str, Callable[[Mapping[str, float]], float]] = {
    "gamma": lambda own: 1 / own["shape"],
    "negbinomial": lambda own: 1.0,
}


class Density(NamedTuple):
    """The log density of a family: the `model` of its mean or location, and the program `of_value` of a row's log
    density, in which `value_name` is the value of that model."""

    family: str
    model: tree.Module
    of_value: tree.Module
    value_name: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The family's own parameters."""
        return _FAMILIES[self.family].parameters

    @property
    def near(self) -> str:
        """The family whose fit of the model is near that of this one."""
        return _FAMILIES[self.family].near

    def predictors(self, columns: Collection[str]) -> list[str]:
        """The `columns` that the model of the mean reads."""
        return [name for name in scope.free_names(self.model) if name in columns]

    def begin(self, value: Any, response: Any) -> dict[str, float]:
        """The start of the family's own parameters, from fitted values and responses `[n]`."""
        family = _FAMILIES[self.family]
        return dict(zip(family.parameters, family.begin(value, response)))

    def doubts(self, own: Mapping[str, float]) -> list[str]:
        """Warnings about the family's own parameters."""
        if self.family == "negbinomial" and own["theta"] > _LARGEST_THETA:
            return ["the counts vary no more than those of --family poisson, to which theta leads as it grows"]
        if self.family == "zipoisson" and own["zero"] <= 0:
            return ["the counts have no more zeros than those of --family poisson"]
        return []

    def deviance_factor(self, own: Mapping[str, float]) -> float | None:
        """The factor of twice the difference of the log-likelihoods in the deviance, for the family's own parameters;
        None where it has none."""
        factor = _DEVIANCES.get(self.family)
        return None if factor is None else factor(own)


def density_of(text: ModelText, family: str, columns: Collection[str]) -> tuple[ModelText, Density]:
    """The text whose model is the log density of a row, and what it consists of.

    Raises BindingError where a name of the model is that of a parameter of the family.
    """
    known = _FAMILIES[family]
    reads = scope.free_names(text.model)
    for name in known.parameters:
        if name in columns or name in reads:
            what = "a column of the data" if name in columns else "a name in the model"
            hint = f"call it otherwise: {name}2='column:{name}'" if name in columns else "call it otherwise"
            raise BindingError(f"'{name}' is {what}, and a parameter of the family {family}", hint=hint)
    value = unused_name("value_of_model", {*columns, *reads})
    formula = known.formula.replace("{m}", value).replace("{y}", f"({text.response.source.strip()})")
    model = rewritten(text.model, [value + " = {value}", formula])
    return text._replace(model=model), Density(family, text.model, parse_charged(formula), value)


def check_density_response(family: str, response: Any, name: str, places: Any) -> None:
    """Raise BindingError for a response that the family cannot have."""
    known = _FAMILIES.get(family)
    bad = ~known.inside(response) if known is not None else np.zeros(1, "bool")
    if bad.any() and known is not None:
        row = int(bad.argmax())
        raise BindingError(
            f"'{name}' is {response[row]:g} in row {places[row] + 1}, and a response of the family {family} is "
            f"{known.domain}",
            hint="leave such rows out, or take another family",
        )
