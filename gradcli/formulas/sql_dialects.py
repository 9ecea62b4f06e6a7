"""What the SQL of one database has that of another has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.formulas.writing import COMPARE, SUM, TIMES, Spelling, by_powers_of_two, infix, lacking, template


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


FLOORED = template("FLOOR(1.0*{0}/{1})")
FLOORED_REST = template("{0} - {1}*FLOOR(1.0*{0}/{1})", SUM)


def _without_mod(name: str) -> Mapping[str, Spelling]:
    """Of a database whose MOD is of whole numbers and decimals alone."""
    return {
        "remainder": by_powers_of_two(FLOORED_REST, None, name),
        "floor_divide": by_powers_of_two(FLOORED, None, name),
        "fmod": lacking(name),
    }


# Columns are numbers in float64 here, of which / leaves nothing out.
_DIVIDED = {"divide": infix("/", TIMES)}

_DUCKDB = Dialect(
    name="duckdb",
    real="DOUBLE",
    infinity="CAST('Infinity' AS DOUBLE)",
    nan="CAST('NaN' AS DOUBLE)",
    functions={
        **_DIVIDED,
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
        **_calls(cbrt="CBRT", log10="LOG", erf="ERF", erfc="ERFC"),
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
        **_calls(cbrt="CBRT", log10="LOG10", isnan="IS_NAN", isinf="IS_INF"),
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
        **_calls(cbrt="CBRT", log2="LOG2", log10="LOG10", expm1="EXPM1", log1p="LOG1P", isnan="ISNAN"),
        "hypot": template("HYPOT({0}, {1})", inner=0),
        # Whole numbers, which end at 2**63.
        "floor": template("CAST(FLOOR({0}) AS DOUBLE)", inner=0),
        "ceil": template("CAST(CEIL({0}) AS DOUBLE)", inner=0),
    },
    quote="`",
    # Without the letter it is a decimal of few digits.
    number="{}D",
)

DIALECTS = {dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SQLITE, _BIGQUERY, _SPARK)}
