"""Values that are written as expressions without free names: `5`, `[1, 2]`, `linspace(0, 1, 5)`."""

from __future__ import annotations

import re
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError, Proposal, Span, UnknownNameError
from gradcli.language.interpreter import evaluate
from gradcli.language.syntax import parse_expression
from gradcli.language.syntax.tree import Evaluate, Module
from gradcli.run import converted

_WITH_UNIT = re.compile(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)[^\W\d][\w/^*²³]*")
# Numbers as those write them who do not know them for certain.
_UNCERTAIN = re.compile(r"\d\s*(\.\.|±|\+-|\+/-)|\d\(\d+(\.\d*)?\)\s*([eE][-+]?\d+)?\s*$")
_UNCERTAIN_HINT = (
    "gradcli propagate and the --prior of gradcli fit take x=1±0.1, gradcli eval --enclose takes intervals, "
    "x=0.9..1.1 and x=1±0.1"
)


def constant(text: str, dtype: str, whole: str, offset: int = 0, *, truths: bool = False) -> Any:
    """The value of an expression without free names, which starts at `offset` of the text `whole`, as an array of the
    default namespace; with `truths` a tensor of truth values as it is. Raises what parsing and evaluating do, with the place in `whole`."""
    try:
        expression = parse_expression(text)
        program = Module(expression.span, text, (Evaluate(expression.span, expression),))
        value = evaluate(program, {}).value
    except GradcliError as error:
        if isinstance(error.hint, Proposal):
            error.hint = error.hint.moved(offset)
        if error.source == text and error.span is not None:
            error.span = Span(error.span.start + offset, error.span.end + offset)
            error.source = whole
        if _UNCERTAIN.search(text):
            error.hint = f"{error.hint}; {_UNCERTAIN_HINT}"
        if isinstance(error, UnknownNameError) and (unit := _WITH_UNIT.fullmatch(text)):
            number = f"{unit[1]}e-3 for thousandths, or {unit[1]}" if text.endswith("m") else unit[1]
            all_of_it = Span(offset, offset + len(text))
            error.hint = Proposal(f"write {number}: a value has no unit", unit[1], span=all_of_it)
        elif isinstance(error, UnknownNameError) and error.span is not None and "give it a value" in (error.hint or ""):
            error.hint = "a value is made of numbers alone: what is made of other names is computed in the program"
        raise
    array = value if arrays.is_array(value) else getattr(value, "data", value)
    return array if truths and converted.is_truths(array) else arrays.astype(array, dtype)
