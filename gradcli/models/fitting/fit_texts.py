"""The programs of a fit: its model, with an offset, and the log density of its family."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gradcli.errors import GradcliError, UsageError
from gradcli.language.parsing import parse_charged
from gradcli.models.fitting.densities import Density, density_of
from gradcli.models.fitting.factors import indexed_parameters, without_indices
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.likelihoods import LOG_DENSITY
from gradcli.models.fitting.model_texts import TILDE, ModelText, read_model
from gradcli.models.fitting.offsets import with_offset
from gradcli.models.fitting.random_terms import RandomTexts, random_texts


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
        text = with_offset(text, offset, known.family, columns)
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
