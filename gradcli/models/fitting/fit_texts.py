"""The programs of a fit: its model, with an offset, and the log density of its family."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from gradcli.errors import UsageError
from gradcli.language.parsing import parse_charged
from gradcli.models.fitting.densities import Density, density_of
from gradcli.models.fitting.factors import indexed_parameters, without_indices
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.likelihoods import LOG_DENSITY
from gradcli.models.fitting.model_texts import TILDE, ModelText, read_model
from gradcli.models.fitting.offsets import with_offset


class FitTexts(NamedTuple):
    """The programs of the model and its response; the `density` of a family that has one, in which case the model is
    that log density, as is a likelihood; and the columns of the parameters that have values by level, by name."""

    text: ModelText
    density: Density | None = None
    indexed: Mapping[str, str] = {}


def texts_of(
    source: str, response: str | None, offset: str | None, known: Assumptions, columns: Sequence[str] | Collection[str]
) -> FitTexts:
    """The programs of the model and its response for these options.

    Raises UsageError, BindingError and ProgramSyntaxError for texts that are no models.
    """
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
