"""The programs of a fit: its model, with an offset, and the log density of its family."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gradcli.errors import UsageError
from gradcli.language.parsing import parse_charged
from gradcli.models.fitting.densities import Density, density_of
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.likelihoods import LOG_DENSITY
from gradcli.models.fitting.model_texts import TILDE, ModelText, read_model
from gradcli.models.fitting.offsets import with_offset


def texts_of(
    source: str, response: str | None, offset: str | None, known: Assumptions, columns: Sequence[str] | Collection[str]
) -> tuple[ModelText, Density | None]:
    """The programs of the model and its response for these options, and the log density of a family that has one; the
    model is then that log density, as is a likelihood.

    Raises UsageError, BindingError and ProgramSyntaxError for texts that are no models.
    """
    if known.family == LOG_DENSITY:
        if TILDE.search(source) is not None:
            raise UsageError(
                "a likelihood has no '~': it is the log density of a row",
                hint="--family names the distribution of a model y ~ …",
            )
        return ModelText(source, parse_charged(source), parse_charged("0")), None
    text = read_model(source, response, [*columns])
    if offset is not None:
        text = with_offset(text, offset, known.family, columns)
    return density_of(text, known.family, columns) if known.is_density else (text, None)
