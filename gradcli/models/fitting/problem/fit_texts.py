"""The programs of a fit: its model, with an offset, and the log density of its family."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from gradcli.errors import BindingError, GradcliError, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.log_densities import Density, density_of
from gradcli.models.fitting.notation.model_texts import TILDE, ModelText, read_model, rewritten
from gradcli.models.fitting.notation.random_terms import RandomTexts, random_texts
from gradcli.models.fitting.problem.factors import indexed_parameters, without_indices
from gradcli.models.fitting.problem.likelihoods import LOG_DENSITY, Assumptions
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name

_FACTOR = "{value}*exp({term})"
_ODDS = "{name}/({name} + (1 - {name})*exp(-({term})))"


class FitTexts(NamedTuple):
    """The programs of the model and its response; the `density` of a family that has one, in which case the model is
    that log density, as is a likelihood; and the columns of the parameters that have values by level, by name. `text` is
    without random effects, which are in `mixed`, None where there are none."""

    text: ModelText
    density: Density | None = None
    indexed: Mapping[str, str] = {}
    random: RandomTexts | None = None
    mixed: ModelText | None = None


def texts_of(
    source: str,
    response: str | None,
    offset: str | None,
    known: Assumptions,
    columns: Sequence[str] | Collection[str],
    random: Sequence[str] = (),
) -> FitTexts:
    """The programs of the model and its response for these options; `random` says which parameters vary by which columns.

    Raises UsageError, BindingError and ProgramSyntaxError for texts that are no models.
    """
    effects = random_texts(source, random, columns)
    if not effects.terms:
        return _texts_of(source, response, offset, known, columns)
    with as_typed(effects, source):
        pooled, mixed = (_texts_of(each, response, offset, known, columns) for each in (effects.pooled, effects.mixed))
    return pooled._replace(random=effects, mixed=mixed.text)


@contextmanager
def as_typed(effects: RandomTexts | None, source: str) -> Iterator[None]:
    """Errors in the programs of a model with random effects show it as it is written, which is as long as these."""
    try:
        yield
    except GradcliError as error:
        if effects is not None and error.source in (effects.pooled, effects.mixed):
            error.source = source
        raise


def _texts_of(
    source: str, response: str | None, offset: str | None, known: Assumptions, columns: Collection[str]
) -> FitTexts:
    text = _read(source, response, known, columns)
    found = indexed_parameters(text.model, columns)
    if found:
        text = _read(
            without_indices(source, [place for _, own in found.values() for place in own]), response, known, columns
        )
    indexed = {name: column for name, (column, _) in found.items()}
    if known.family == LOG_DENSITY:
        return FitTexts(text, None, indexed)
    if offset is not None:
        text = _with_offset(text, offset, known.family, columns)
    density = None
    if known.is_density:
        text, density = density_of(text, known.family, columns)
    return FitTexts(text, density, indexed)


def _read(source: str, response: str | None, known: Assumptions, columns: Collection[str]) -> ModelText:
    if known.family != LOG_DENSITY:
        return read_model(source, response, [*columns])
    if TILDE.search(source) is not None:
        raise UsageError(
            "a likelihood has no '~': it is the log density of a row",
            hint="--family names the distribution of a model y ~ …",
        )
    return ModelText(source, parse_charged(source), parse_charged("0"))


# Formulas of the model's value by family, from the `{value}` without offset, which `{name}` stands for where a statement
# before assigns it, and the offset `{term}`.
_TEXTS = {
    "gaussian": "{value} + ({term})",
    "poisson": _FACTOR,
    "gamma": _FACTOR,
    "negbinomial": _FACTOR,
    "zipoisson": _FACTOR,
    "weibull": _FACTOR,
    "lognormal": _FACTOR,
    "binomial": _ODDS,
    "beta": _ODDS,
    "student": "{value} + ({term})",
}


def _with_offset(text: ModelText, offset: str, family: str, columns: Collection[str]) -> ModelText:
    """The model with an offset, an expression of `columns`.

    Raises BindingError for another name in it, and ProgramSyntaxError and UsageError for what is not one expression.
    """
    program = parse_charged(offset)
    if len(program.body) != 1 or not isinstance(program.body[0], tree.Evaluate):
        raise UsageError("an offset is one expression", hint="--offset 'log(t)'")
    for name, found in scope.free_names(program).items():
        if name not in columns and name not in scope.CONSTANTS:
            raise BindingError(
                f"'{name}' in the offset is no column of the data",
                hint=did_you_mean(name, columns, f"they have {', '.join(columns) or 'none'}"),
                span=found.span,
                source=offset,
            )
    name = unused_name("value_before_offset", columns)
    before = [name + " = {value}"] if _TEXTS[family] == _ODDS else []
    formula = _TEXTS[family].replace("{name}", name).replace("{term}", offset)
    return text._replace(model=rewritten(text.model, [*before, formula]))
