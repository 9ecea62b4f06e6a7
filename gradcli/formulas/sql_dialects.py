"""What the SQL of one database has that of another has not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli.formulas.writing import (
    ATOM,
    COMPARE,
    SUM,
    TIMES,
    Piece,
    Spelling,
    by_powers_of_two,
    clipped,
    infix,
    lacking,
    template,
)
from gradcli.program.ir import Equation, Variable


class Dialect(NamedTuple):
    """`real` is the type of a number in float64, `number` how one is written, and `infinity` and `nan` these, the empty
    text where there is none. `functions` are spelled otherwise than for any database."""

    name: str
    real: str
    infinity: str
    nan: str
    functions: Mapping[str, Spelling]
    quote: str = '"'
    number: str = "{}"


def _calls(**names: str) -> Mapping[str, Spelling]:
    """The functions of one operand that a database has, by our names."""
    return {ours: template(f"{theirs}({{0}})", inner=0) for ours, theirs in names.items()}


# Of an infinity there is no rest, and no whole quotient.
FLOORED = template("FLOOR(1.0*{0}/{1}) + 0.0*{0}", SUM)
FLOORED_REST = template("{0} - {1}*FLOOR(1.0*{0}/{1})", SUM)


def _without_mod(name: str) -> Mapping[str, Spelling]:
    """Of a database whose MOD is of whole numbers and decimals alone."""
    return {
        "remainder": by_powers_of_two(FLOORED_REST, None, name),
        "floor_divide": by_powers_of_two(FLOORED, None, name),
        "fmod": lacking(name),
    }


def _finiteness(infinity: str) -> Mapping[str, Spelling]:
    return {
        "isinf": template(f"ABS({{0}}) = {infinity}", COMPARE, inner=0),
        "isfinite": template(f"ABS({{0}}) < {infinity}", COMPARE, inner=0),
    }


LARGER = template("CASE WHEN {0} >= {1} THEN {0} ELSE {1} END")
# Where nan is the largest number, as -nan is.
_SMALLER = template("CASE WHEN -{0} >= -{1} THEN {0} ELSE {1} END")


def _with_largest_nan(isnan: str) -> Mapping[str, Spelling]:
    """Of a database to which nan is larger than every number, and equal to itself."""
    nan, other = isnan.format("{0}"), isnan.format("{1}")
    return {
        "less": _comparison("<", 1, isnan),
        "less_equal": _comparison("<=", 1, isnan),
        "greater": _comparison(">", 0, isnan),
        "greater_equal": _comparison(">=", 0, isnan),
        "equal": _comparison("=", 0, isnan),
        "not_equal": template(f"({{0}} <> {{1}} OR {nan})"),
        "minimum": _SMALLER,
        "clip": clipped(
            template("CASE WHEN {0} < {1} THEN {1} WHEN -{0} < -{2} THEN {2} ELSE {0} END"), LARGER, _SMALLER
        ),
        "sign": template(f"CASE WHEN {nan} THEN {{0}} ELSE SIGN({{0}}) END"),
        "xlogy": template(f"CASE WHEN {{0}} = 0.0 AND NOT {other} THEN 0.0 ELSE {{0}}*LN({{1}}) END"),
    }


def _comparison(symbol: str, place: int, isnan: str) -> Spelling:
    """A comparison that does not hold where the operand at this place, a variable, is nan."""
    plain = infix(symbol, COMPARE)

    def spelled(equation: Equation, operands: Sequence[Piece]) -> Piece:
        found = plain(equation, operands)
        if not isinstance(equation.inputs[place], Variable):
            return found
        return Piece(f"({found.text} AND NOT {isnan.format(operands[place].at(ATOM))})")

    return spelled


# Columns are numbers in float64 here, of which / leaves nothing out.
_DIVIDED = {"divide": infix("/", TIMES)}

_DUCKDB = Dialect(
    name="duckdb",
    real="DOUBLE",
    infinity="CAST('Infinity' AS DOUBLE)",
    nan="CAST('NaN' AS DOUBLE)",
    functions={
        **_DIVIDED,
        **_with_largest_nan("ISNAN({})"),
        **_calls(cbrt="CBRT", log2="LOG2", log10="LOG10", gamma="GAMMA", lgamma="LGAMMA"),
        **_calls(isnan="ISNAN", isinf="ISINF", isfinite="ISFINITE"),
    },
)

_POSTGRES = Dialect(
    name="postgres",
    real="DOUBLE PRECISION",
    infinity="CAST('Infinity' AS DOUBLE PRECISION)",
    nan="CAST('NaN' AS DOUBLE PRECISION)",
    functions={
        **_DIVIDED,
        **_without_mod("postgres"),
        **_with_largest_nan("({} = CAST('NaN' AS DOUBLE PRECISION))"),
        **_calls(cbrt="CBRT", log10="LOG", erf="ERF", erfc="ERFC"),
        **_finiteness("CAST('Infinity' AS DOUBLE PRECISION)"),
        "isnan": template("{0} = CAST('NaN' AS DOUBLE PRECISION)", COMPARE),
    },
)

_SQLITE = Dialect(
    name="sqlite",
    real="REAL",
    infinity="9e999",
    # What is nan is null there.
    nan="",
    functions={
        **_DIVIDED,
        **_calls(log2="LOG2", log10="LOG10"),
        **_finiteness("9e999"),
        "isnan": template("{0} IS NULL", COMPARE),
    },
)

_BIGQUERY = Dialect(
    name="bigquery",
    real="FLOAT64",
    infinity="CAST('inf' AS FLOAT64)",
    nan="CAST('nan' AS FLOAT64)",
    functions={
        **_without_mod("bigquery"),
        # A query ends where / divides by 0.
        "divide": template("IEEE_DIVIDE({0}, {1})", inner=0),
        "reciprocal": template("IEEE_DIVIDE(1.0, {0})", inner=0),
        **_calls(cbrt="CBRT", log10="LOG10", isnan="IS_NAN"),
        **_finiteness("CAST('inf' AS FLOAT64)"),
        "log2": template("LOG({0}, 2.0)", inner=0),
    },
    quote="`",
)

_SPARK = Dialect(
    name="spark",
    real="DOUBLE",
    infinity="CAST('Infinity' AS DOUBLE)",
    nan="CAST('NaN' AS DOUBLE)",
    functions={
        **_DIVIDED,
        **_with_largest_nan("ISNAN({})"),
        **_calls(cbrt="CBRT", log2="LOG2", log10="LOG10", expm1="EXPM1", log1p="LOG1P", isnan="ISNAN"),
        "hypot": template("HYPOT({0}, {1})", inner=0),
        **_finiteness("CAST('Infinity' AS DOUBLE)"),
        # Whole numbers, which end at 2**63.
        "floor": template("CAST(FLOOR({0}) AS DOUBLE)", inner=0),
        "ceil": template("CAST(CEIL({0}) AS DOUBLE)", inner=0),
    },
    quote="`",
    # Without the letter it is a decimal of few digits.
    number="{}D",
)

DIALECTS = {dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SQLITE, _BIGQUERY, _SPARK)}
