"""Evaluates values that are written as expressions without free names: `5`, `[1, 2]`, `linspace(0, 1, 5)`."""

from __future__ import annotations

import re

from gradcli import arrays
from gradcli.errors import GradcliError, ProgramSyntaxError, Proposal, Span, UnknownNameError
from gradcli.language.interpreter.run import evaluate, literal_value
from gradcli.language.syntax import parse_expression
from gradcli.language.syntax.tree import Evaluate, Module, Number
from gradcli.type_hints import Any

_OTHER_NAMES = "a value is made of numbers alone: what is made of other names is computed in the program"
_IMAGINARY_UNITS = ("i", "j", "I", "J")
# Patterns used only in error messages; they are compiled on use, to save time at the start.
_FILE = r"[\w./\\~-]+\.(?:csv|tsv|txt|npy|npz|json|jsonl|parquet|arrow)(?::[^:]+)?"
_WITH_UNIT = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([^\W\d][\w/^*²³]*)"
# Units that commonly take an SI prefix; `_PREFIXES` maps each prefix to its power of ten.
_UNITS = (
    "kg", "m", "g", "s", "A", "K", "mol", "cd", "Hz", "N", "Pa", "J", "W", "C", "V", "F", "Ω", "Ohm", "ohm", "S", "Wb", "T", "H",
    "lm", "lx", "Bq", "Gy", "Sv", "eV", "l", "L", "t", "bar",
)  # fmt: skip
_PREFIXES = {
    "f": -15,
    "p": -12,
    "n": -9,
    "u": -6,
    "µ": -6,
    "μ": -6,
    "m": -3,
    "c": -2,
    "h": 2,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
}
# Notations of uncertain numbers: 1..2, 1±0.1, 1+-0.1, 1.00(5).
_UNCERTAIN = r"\d\s*(\.\.|±|\+-|\+/-)|\d\(\d+(\.\d*)?\)\s*([eE][-+]?\d+)?\s*$"
_UNCERTAIN_HINT = (
    "gradcli propagate and the --prior of gradcli fit take x=1±0.1, gradcli eval --enclose takes intervals, "
    "x=0.9..1.1 and x=1±0.1"
)


def constant(text: str, dtype: str, whole: str, offset: int = 0, *, truths: bool = False) -> Any:
    """Evaluate an expression without free names, and return an array of the default namespace.

    `text` starts at `offset` of the text `whole`. With `truths`, a boolean array is returned unconverted. Raises what
    parsing and evaluation raise, with the position in `whole`.
    """
    try:
        expression = parse_expression(text)
        if isinstance(expression, Number):
            return arrays.in_precision(literal_value(expression, text), dtype)
        program = Module(expression.span, text, (Evaluate(expression.span, expression),))
        value = evaluate(program, {}).value
    except GradcliError as error:
        if isinstance(error.hint, Proposal):
            error.hint = error.hint.moved(offset)
        if error.source == text and error.span is not None:
            error.span = Span(error.span.start + offset, error.span.end + offset)
            error.source = whole
        if re.search(_UNCERTAIN, text):
            error.hint = f"{error.hint}; {_UNCERTAIN_HINT}" if error.hint else _UNCERTAIN_HINT
        if isinstance(error, UnknownNameError) and (unit := re.fullmatch(_WITH_UNIT, text)):
            error.hint = _without_unit(unit[1], unit[2], Span(offset, offset + len(text)))
        elif isinstance(error, UnknownNameError) and error.span is not None and "give it a value" in (error.hint or ""):
            is_unit = whole[error.span.start : error.span.end] in _IMAGINARY_UNITS
            error.hint = Proposal("write 1j for the imaginary unit", "1j", span=error.span) if is_unit else _OTHER_NAMES
        if text.endswith(",") and isinstance(error, ProgramSyntaxError):
            error.hint = Proposal(
                f"write {text[:-1]}, without the comma", text[:-1], span=Span(offset, offset + len(text))
            )
        if re.fullmatch(_FILE, text):
            error.hint = f"write {whole[:offset]}@{text} for what a file holds"
        raise
    array = value if arrays.is_array(value) else getattr(value, "data", value)
    if truths:
        # Imported here as few values are used as masks.
        from gradcli.evaluation.python_values import is_boolean_array

        if is_boolean_array(array):
            return array
    return arrays.in_precision(array, dtype)


def _without_unit(number: str, unit: str, span: Span) -> Proposal | str:
    """The hint for a number that is followed by letters."""
    prefix, of = unit[0], unit[1:]
    if unit in ("deg", "degree", "degrees"):
        return Proposal(f"write deg2rad({number})", f"deg2rad({number})", span=span)
    if unit in _UNITS and unit != "m":
        return Proposal(f"write {number}: a value has no unit", number, span=span)
    if prefix in _PREFIXES and (of in _UNITS or unit == "m"):
        scaled = f"{number}e{_PREFIXES[prefix]}" if "e" not in number.lower() else f"{number}*1e{_PREFIXES[prefix]}"
        what = f"in {of}" if of else "for thousandths"
        in_unit = f"in {unit}" if of else "in metres"
        said = f"write {scaled} {what}, or {number} {in_unit}: a value has no unit"
        return Proposal(said, scaled, number, span=span)
    if prefix in _PREFIXES and of.isdecimal() and "." not in number:
        written = f"{number}.{of}e{_PREFIXES[prefix]}"
        return Proposal(f"write {written}", written, span=span)
    if len(unit) == 1:
        return _OTHER_NAMES
    return Proposal(f"write {number} where '{unit}' is a unit: a value has none", number, span=span)
