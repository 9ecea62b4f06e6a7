"""Adds an offset to a model: a known term on the scale of the link of its family, which is the logarithm of a count,
the log-odds of an event, or a measurement itself."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.errors import BindingError, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.model_texts import ModelText, rewritten

# Name of the model's value without its offset.
_VALUE = "value_before_offset"
# Formulas of the model's value by family, from the `{value}` without offset and the offset `{term}`.
_TEXTS = {
    "gaussian": "{value} + ({term})",
    "poisson": "{value}*exp({term})",
    "binomial": f"{_VALUE}/({_VALUE} + (1 - {_VALUE})*exp(-({{term}})))",
}


def with_offset(text: ModelText, offset: str, family: str, columns: Collection[str]) -> ModelText:
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
    before = [_VALUE + " = {value}"] if family == "binomial" else []
    return text._replace(model=rewritten(text.model, [*before, _TEXTS[family].replace("{term}", offset)]))
