"""Adds an offset to a model: a known term on the scale of the link of its family, which is the logarithm of a count
or of a quantity above 0, the log-odds of an event or of a share, or a measurement itself."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.errors import BindingError, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.model_texts import ModelText, rewritten
from gradcli.rows.new_tables import unused_name

_FACTOR = "{value}*exp({term})"
_ODDS = "{name}/({name} + (1 - {name})*exp(-({term})))"
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
    name = unused_name("value_before_offset", columns)
    before = [name + " = {value}"] if _TEXTS[family] == _ODDS else []
    formula = _TEXTS[family].replace("{name}", name).replace("{term}", offset)
    return text._replace(model=rewritten(text.model, [*before, formula]))
