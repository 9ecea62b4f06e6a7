"""Code generation: programs as the columns of a SQL SELECT, in the dialects of the supported databases."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.formulas.languages.text import negated
from gradcli.formulas.writing.documents import Document, Formulas, identifier
from gradcli.formulas.writing.naming import Names, Naming, inputs_read_by, names_of, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    PRODUCT,
    SCALAR_FUNCTIONS,
    SUM,
    TANHSHRINK,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    Spelling,
    by_powers_of_two,
    calls,
    clipped,
    comparisons_without_nan,
    expect_numbers,
    function,
    infix,
    operators,
    template,
    unsupported,
    write,
)
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Equation


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
_FLOORED = template("FLOOR(1.0*{0}/{1}) + 0.0*{0}", SUM)
_FLOORED_REST = template("{0} - {1}*FLOOR(1.0*{0}/{1})", SUM)


def _without_mod(name: str) -> Mapping[str, Spelling]:
    """Spellings for a database whose MOD accepts integers and decimals only."""
    return {
        "remainder": by_powers_of_two(_FLOORED_REST, None, name),
        "floor_divide": by_powers_of_two(_FLOORED, None, name),
        "fmod": unsupported(name),
    }


def _finiteness(infinity: str) -> Mapping[str, Spelling]:
    return {
        "isinf": template(f"ABS({{0}}) = {infinity}", COMPARE, inner=0),
        "isfinite": template(f"ABS({{0}}) < {infinity}", COMPARE, inner=0),
    }


_LARGER = template("CASE WHEN {0} >= {1} THEN {0} ELSE {1} END")
# For databases where nan is the largest number, so that -nan is too.
_LEAST = template("CASE WHEN -{0} >= -{1} THEN {0} ELSE {1} END")


def _with_largest_nan(isnan: str) -> Mapping[str, Spelling]:
    """Spellings for a database that treats nan as larger than every number and equal to itself."""
    nan, other = isnan.format("{0}"), isnan.format("{1}")
    return {
        **comparisons_without_nan(f"({{0}} AND NOT {other})", infix, equal="="),
        "not_equal": template(f"({{0}} <> {{1}} OR {nan})"),
        "minimum": _LEAST,
        "clip": clipped(
            template("CASE WHEN {0} < {1} THEN {1} WHEN -{0} < -{2} THEN {2} ELSE {0} END"), _LARGER, _LEAST
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

_DIALECTS = {dialect.name: dialect for dialect in (_DUCKDB, _POSTGRES, _SQLITE, _BIGQUERY, _SPARK)}


# Words that cannot be column names without quotes in SQLite, PostgreSQL, MySQL, SQL Server or Oracle.
_RESERVED = frozenset(
    """access accessible add all alter analyse analyze and any array as asc asensitive asymmetric audit
    authorization autoincrement backup before begin between bigint binary blob both break browse bulk by call
    cascade case cast change char character check checkpoint close cluster clustered coalesce collate collation
    column comment commit compress compute concurrently condition connect constraint contains containstable
    continue convert create cross cube cume_dist current current_catalog current_date current_role
    current_schema current_time current_timestamp current_user cursor database databases date day_hour
    day_microsecond day_minute day_second dbcc deallocate dec decimal declare default deferrable delayed delete
    dense_rank deny desc describe deterministic disk distinct distinctrow distributed div do double drop dual
    dump each else elseif empty enclosed end errlvl escape escaped except exclusive exec execute exists exit
    explain external false fetch file fillfactor first_value float float4 float8 for force foreign freetext
    freetexttable freeze from full fulltext function generated get goto grant group grouping groups having
    high_priority holdlock hour_microsecond hour_minute hour_second identified identity identity_insert
    identitycol if ignore ilike immediate in increment index infile initial initially inner inout insensitive
    insert int int1 int2 int3 int4 int8 integer intersect interval into io_after_gtids io_before_gtids is isnull
    iterate join json_table key keys kill lag last_value lateral lead leading leave left level like limit linear
    lineno lines load localtime localtimestamp lock long longblob longtext loop low_priority manual match
    maxextents maxvalue mediumblob mediumint mediumtext merge middleint minus mlslabel mod mode modifies modify
    national natural no_write_to_binlog noaudit nocheck nocompress nonclustered not nothing notnull nowait
    nth_value ntile null nullif number numeric of off offline offset offsets on online only open opendatasource
    openquery openrowset openxml optimize option optionally or order out outer outfile over overlaps parallel
    partition pctfree percent percent_rank pivot placing plan precision primary print prior proc procedure
    public purge qualify raiserror raise range rank raw read reads readtext real reconfigure recursive references
    regexp release rename repeat replace replication require resignal resource restore restrict return returning
    revert revoke right rlike rollback row row_number rowcount rowguidcol rowid rownum rows rule save schema
    schemas second_microsecond securityaudit select sensitive separator session session_user set setuser share
    show shutdown signal similar size smallint some spatial specific sql sqlexception sqlstate sqlwarning ssl
    start starting statistics stored straight_join successful symmetric synonym sysdate system system_user table
    tablesample terminated textsize then tinyblob tinyint tinytext to top trailing tran transaction trigger true
    truncate try_convert tsequal uid undo union unique unlock unpivot unsigned update updatetext usage use user
    using utc_date utc_time utc_timestamp validate values varbinary varchar varchar2 varcharacter variadic
    varying verbose view virtual waitfor when whenever where while window with within write writetext xor
    year_month zerofill""".split()  # noqa: SIM905
)


# Further reserved words of DuckDB, BigQuery and Spark.
_RESERVED_BY_FEW = frozenset(
    """anti asof assert_rows_modified describe enum glob hash ignore lambda lookup map minus nested new no nulls over
    pivot_longer pivot_wider positional proto qualify respect rollup semi show struct summarize transform treat
    unnest""".split()  # noqa: SIM905
)


def sql(formulas: Formulas) -> Document:
    """The value and its derivatives as the columns of a SELECT that any database runs. Raises DifferentiationError for
    tensor inputs."""
    return _document(formulas, LANGUAGE, None)


def of_dialect(name: str) -> Language:
    """The language variant for one database."""
    dialect = _DIALECTS[name]
    language = LANGUAGE._replace(
        name=name,
        functions={**LANGUAGE.functions, **dialect.functions},
        number=partial(_number, dialect=dialect),
        naming=_naming(dialect.quote, _RESERVED | _RESERVED_BY_FEW),
    )
    return language._replace(document=lambda formulas: _document(formulas, language, dialect))


def _document(formulas: Formulas, language: Language, dialect: SqlDialect | None) -> Document:
    formulas = stable(formulas, language)
    names, results = names_of(formulas.value, language.naming), Names(language.naming)
    renamed, columns = [*_renamed(names)], names.inputs
    if dialect is not None:
        # Columns may hold integers or decimals.
        names.inputs = {name: f"CAST({column} AS {dialect.real})" for name, column in columns.items()}
    programs = [("value", formulas.value), *((identifier("d", key), d) for key, d in formulas.derivatives.items())]
    lines = []
    for name, program in programs:
        expect_numbers(program, "a column")
        text = write(program, language, names).result
        text = _with_nulls(text, [columns[n] for n in inputs_read_by(program)])
        lines.append(f"    {text} AS {results.new(name)}")
    select = "\n".join(["SELECT", ",\n".join(lines), *renamed])
    return Document(select, {"select": select})


def _renamed(names: Names) -> Iterator[str]:
    """Comments for renamed columns: names that differ only in case, such as `X` and `x`, are the same to a database."""
    for name, column in names.inputs.items():
        if _bare(column) != name:
            yield f"/* {column} stands for {name} */"


def _with_nulls(text: str, columns: Sequence[str]) -> str:
    """An expression that is NULL where one of `columns` is: a CASE condition on NULL counts as false."""
    if "CASE WHEN " not in text or not columns:
        return text
    there = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    return f"CASE WHEN {there} THEN {text} END"


def _naming(quote: str, reserved: Collection[str]) -> Naming:
    """The naming of columns: quoted where necessary, and case-insensitive."""

    def columns(name: str) -> Iterator[str]:
        for spelled in with_underscores(name):
            plain = re.fullmatch(r"[a-z_][a-z0-9_]*", spelled) and spelled not in reserved
            yield spelled if plain else f"{quote}{spelled}{quote}"

    def elements(column: str, key: Sequence[int]) -> Iterator[str]:
        return columns("_".join([_bare(column), *map(str, key)]))

    return Naming(columns, lambda column: _bare(column).casefold(), elements)


def _bare(column: str) -> str:
    return column.strip('"`')


def _number(value: Any, dialect: SqlDialect | None = None) -> Fragment:
    if arrays.dtype_name(value) == "bool":
        return Fragment("(1 = 1)" if value else "(1 = 0)")
    value = float(value)
    if math.copysign(1.0, value) < 0 and not math.isnan(value):
        return Fragment(f"-{_number(-value, dialect).text}", UNARY)
    if math.isfinite(value):
        return Fragment(repr(value) if dialect is None else dialect.number.format(repr(value)))
    found = "" if dialect is None else dialect.nan if math.isnan(value) else dialect.infinity
    if not found:
        name, hint = ("sql", "--dialect names a database that may have it") if dialect is None else (dialect.name, None)
        raise DifferentiationError(f"{value} cannot be written as {name}, which has no such number", hint=hint)
    return Fragment(found)


def _array(_constant: Any) -> Fragment:
    raise DifferentiationError("a tensor cannot be written as sql, which has numbers alone", hint="--to python can")


def _divided(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A division with a float numerator: / of integers would drop the remainder."""
    first, second = operands
    above = first.at(PRODUCT)
    if not re.match(r"\d+\.\d", above):
        above = f"1.0*{first.at(TIMES)}"
    return Fragment(f"{above}/{second.at(UNARY)}", TIMES)


def _power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return function("POWER", operands[0].text, _number(equation.params["n"]).text)


# MOD is exact (fmod), whereas a quotient may be rounded up to an integer.
_HAS_OTHER_SIGN = "SIGN(MOD({0}, {1}))*SIGN({1}) < 0.0"
_REST = f"CASE WHEN {_HAS_OTHER_SIGN} THEN MOD({{0}}, {{1}}) + {{1}} ELSE MOD({{0}}, {{1}}) END"
_QUOTIENT = (
    "CASE WHEN {1} = 0.0 THEN 1.0*{0}/{1} "
    f"ELSE ROUND(({{0}} - MOD({{0}}, {{1}}))/{{1}}) - CASE WHEN {_HAS_OTHER_SIGN} THEN 1.0 ELSE 0.0 END END"
)
# log1p of an operand of at least 0; LN(1.0 + {0}) loses digits for small operands.
_LOG1P_OF_POSITIVE = "2.0*ATANH({0}/(2.0 + {0}))"
# log(1 + exp(-|x|)), and the same in base 2.
_SOFT = _LOG1P_OF_POSITIVE.format("EXP(-ABS({0}))")
_SOFT_DIFFERENCE = _LOG1P_OF_POSITIVE.format("EXP(-ABS({0} - {1}))")
_SOFT2_DIFFERENCE = _LOG1P_OF_POSITIVE.format("POWER(2.0, -ABS({0} - {1}))")


def _turns(angle: str) -> tuple[str, str]:
    """The sine and cosine of pi*angle as SQL; the angle is reduced modulo 2, which is exact, so that zeros are
    exact."""
    rest = f"(ABS({angle}) - 2.0*FLOOR(ABS({angle})/2.0))"
    pi = repr(math.pi)
    sine = (
        f"SIGN({angle})*SIN({pi}*CASE WHEN {rest} < 0.5 THEN {rest} WHEN {rest} > 1.5 THEN {rest} - 2.0 "
        f"ELSE 1.0 - {rest} END)"
    )
    return sine, f"SIN({pi}*(0.5 - ABS(1.0 - ABS({rest} - 1.0))))"


def _larger_and(rest: str, of_equal: str) -> str:
    """The larger operand plus `rest`; equal operands are a separate case, since `rest` is nan for equal infinities."""
    larger = f"CASE WHEN {{0}} >= {{1}} THEN {{0}} ELSE {{1}} END + {rest}"
    return f"CASE WHEN {{0}} = {{1}} THEN {{0}} + {of_equal} ELSE {larger} END"


_SMALLER = template("CASE WHEN {0} <= {1} THEN {0} ELSE {1} END")
_SINE, _COSINE = _turns("{0}")


def _choice(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    condition, x, y = (o.text for o in operands)
    # A choice nested in the last branch becomes further WHEN cases.
    further = operands[2].level == ATOM and y.startswith("CASE WHEN ")
    others = y.removeprefix("CASE ").removesuffix(" END") if further else f"ELSE {y}"
    return Fragment(f"CASE WHEN {condition} THEN {x} {others} END")


LANGUAGE = Language(
    name="sql",
    comment="--",
    functions={
        **operators("// % @ **", equal="=", not_equal="<>"),
        **SCALAR_FUNCTIONS,
        "divide": _divided,
        "negative": negated,
        "whole_power": _power,
        "rsqrt": lambda _equation, operands: Fragment(f"1.0/SQRT({operands[0].text})", TIMES),
        "cbrt": template("(SIGN({0})*POWER(ABS({0}), 1.0/3.0))"),
        "exp2": lambda _equation, operands: function("POWER", "2.0", operands[0].text),
        # EXP({0}) - 1.0 and LN(1.0 + {0}) lose digits for small operands.
        "expm1": template("CASE WHEN ABS({0}) < 1.0 THEN 2.0*SINH({0}/2.0)*EXP({0}/2.0) ELSE EXP({0}) - 1.0 END"),
        "log1p": template(f"CASE WHEN ABS({{0}}) < 0.5 THEN {_LOG1P_OF_POSITIVE} ELSE LN(1.0 + {{0}}) END"),
        "log2": lambda _equation, operands: Fragment(f"LN({operands[0].text})/LN(2.0)", TIMES),
        "log10": lambda _equation, operands: Fragment(f"LN({operands[0].text})/LN(10.0)", TIMES),
        "sigmoid": template("1.0/(1.0 + EXP(-{0}))", TIMES),
        "logsigmoid": template(f"CASE WHEN {{0}} < 0.0 THEN {{0}} ELSE 0.0 END - {_SOFT}", SUM),
        "softplus": template(f"CASE WHEN {{0}} > 0.0 THEN {{0}} ELSE 0.0 END + {_SOFT}", SUM),
        "logaddexp": template(_larger_and(_SOFT_DIFFERENCE, "LN(2.0)")),
        "relu": template("CASE WHEN {0} > 0.0 THEN {0} ELSE 0.0 END"),
        "maximum": _LARGER,
        "minimum": _SMALLER,
        "clip": clipped(
            template("CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END"), _LARGER, _SMALLER
        ),
        "remainder": by_powers_of_two(_FLOORED_REST, template(_REST), "sql"),
        "floor_divide": by_powers_of_two(_FLOORED, template(_QUOTIENT), "sql"),
        "fmod": template("MOD({0}, {1})", inner=0),
        "where": _choice,
        "xlogy": template("CASE WHEN {0} = 0.0 THEN 0.0 ELSE {0}*LN({1}) END"),
        "logical_and": template("({0} AND {1})"),
        "logical_or": template("({0} OR {1})"),
        "logical_not": template("NOT {0}", COMPARE),
        "logaddexp2": template(_larger_and(f"{_SOFT2_DIFFERENCE}/LN(2.0)", "1.0")),
        "sech": template("1.0/COSH({0})", TIMES),
        "csch": template("1.0/SINH({0})", TIMES),
        "coth": template("1.0/TANH({0})", TIMES),
        "sinpi": template(_SINE, TIMES),
        "cospi": template(_COSINE),
        "softsign": template("{0}/(1.0 + ABS({0}))", TIMES),
        "tanhshrink": template(f"CASE WHEN ABS({{0}}) < 0.01 THEN {TANHSHRINK} ELSE {{0}} - TANH({{0}}) END"),
        "sech_square": template("POWER(COSH({0}), -2.0)"),
        "logcosh": template(
            f"CASE WHEN ABS({{0}}) < 1.0 THEN {_LOG1P_OF_POSITIVE.format('(2.0*POWER(SINH({0}/2.0), 2.0))')} "
            f"ELSE ABS({{0}}) + {_LOG1P_OF_POSITIVE.format('EXP(-2.0*ABS({0}))')} - LN(2.0) END"
        ),
    },
    others=calls("sql", lambda primitive: primitive.spelling.get("sql", "").upper()),
    number=_number,
    array=_array,
    document=sql,
    naming=_naming('"', _RESERVED),
    parts=False,
    tensors=False,
    truths=BooleanConversion(
        lambda truth: Fragment(f"CASE WHEN {truth.text} THEN 1.0 ELSE 0.0 END"),
        lambda number: Fragment(f"{number.at(SUM)} <> 0.0", COMPARE),
    ),
)
