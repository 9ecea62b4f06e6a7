"""The differences between the SQL dialects of the supported databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.formulas.text_writer import (
    COMPARE,
    SUM,
    TIMES,
    Spelling,
    by_powers_of_two,
    clipped,
    comparisons_without_nan,
    infix,
    template,
    unsupported,
)


class SqlDialect(NamedTuple):
    """A SQL dialect: `real` is the type of float64 numbers, `number` the format of a literal, `infinity` and `nan` the
    spellings of these (empty if there are none), and `functions` the spellings that differ from generic SQL."""

    name: str
    real: str
    infinity: str
    nan: str
    functions: Mapping[str, Spelling]
    quote: str = '"'
    number: str = "{}"


def _calls(**names: str) -> Mapping[str, Spelling]:
    """Spellings for unary functions that a database has, by the names of primitives."""
    return {ours: template(f"{theirs}({{0}})", inner=0) for ours, theirs in names.items()}


# The added 0.0*{0} makes the result nan for an infinite operand.
FLOORED = template("FLOOR(1.0*{0}/{1}) + 0.0*{0}", SUM)
FLOORED_REST = template("{0} - {1}*FLOOR(1.0*{0}/{1})", SUM)


def _without_mod(name: str) -> Mapping[str, Spelling]:
    """Spellings for a database whose MOD accepts integers and decimals only."""
    return {
        "remainder": by_powers_of_two(FLOORED_REST, None, name),
        "floor_divide": by_powers_of_two(FLOORED, None, name),
        "fmod": unsupported(name),
    }


def _finiteness(infinity: str) -> Mapping[str, Spelling]:
    return {
        "isinf": template(f"ABS({{0}}) = {infinity}", COMPARE, inner=0),
        "isfinite": template(f"ABS({{0}}) < {infinity}", COMPARE, inner=0),
    }


LARGER = template("CASE WHEN {0} >= {1} THEN {0} ELSE {1} END")
# For databases where nan is the largest number, so that -nan is too.
_SMALLER = template("CASE WHEN -{0} >= -{1} THEN {0} ELSE {1} END")


def _with_largest_nan(isnan: str) -> Mapping[str, Spelling]:
    """Spellings for a database that treats nan as larger than every number and equal to itself."""
    nan, other = isnan.format("{0}"), isnan.format("{1}")
    return {
        **comparisons_without_nan(f"({{0}} AND NOT {other})", infix, equal="="),
        "not_equal": template(f"({{0}} <> {{1}} OR {nan})"),
        "minimum": _SMALLER,
        "clip": clipped(
            template("CASE WHEN {0} < {1} THEN {1} WHEN -{0} < -{2} THEN {2} ELSE {0} END"), LARGER, _SMALLER
        ),
        "sign": template(f"CASE WHEN {nan} THEN {{0}} ELSE SIGN({{0}}) END"),
        "xlogy": template(f"CASE WHEN {{0}} = 0.0 AND NOT {other} THEN 0.0 ELSE {{0}}*LN({{1}}) END"),
    }


# Columns are cast to float64, so that / is not an integer division.
_DIVIDED = {"divide": infix("/", TIMES)}

_DUCKDB = SqlDialect(
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

_POSTGRES = SqlDialect(
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

_SQLITE = SqlDialect(
    name="sqlite",
    real="REAL",
    infinity="9e999",
    # SQLite stores nan as NULL.
    nan="",
    functions={
        **_DIVIDED,
        **_calls(log2="LOG2", log10="LOG10"),
        **_finiteness("9e999"),
        "isnan": template("{0} IS NULL", COMPARE),
    },
)

_BIGQUERY = SqlDialect(
    name="bigquery",
    real="FLOAT64",
    infinity="CAST('inf' AS FLOAT64)",
    nan="CAST('nan' AS FLOAT64)",
    functions={
        **_without_mod("bigquery"),
        # / raises an error for division by 0.
        "divide": template("IEEE_DIVIDE({0}, {1})", inner=0),
        "reciprocal": template("IEEE_DIVIDE(1.0, {0})", inner=0),
        **_calls(cbrt="CBRT", log10="LOG10", isnan="IS_NAN"),
        **_finiteness("CAST('inf' AS FLOAT64)"),
        "log2": template("LOG({0}, 2.0)", inner=0),
    },
    quote="`",
)

_SPARK = SqlDialect(
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
        # FLOOR and CEIL return 64-bit integers.
        "floor": template("CAST(FLOOR({0}) AS DOUBLE)", inner=0),
        "ceil": template("CAST(CEIL({0}) AS DOUBLE)", inner=0),
    },
    quote="`",
    # Without the suffix a literal is a decimal of few digits.
    number="{}D",
)

DIALECTS = {dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SQLITE, _BIGQUERY, _SPARK)}
