"""Programs as a select expression with a column for each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.formulas.documents import Document, Formulas, identifier
from gradcli.formulas.text import negated
from gradcli.formulas.writing import (
    COMPARE,
    PRODUCT,
    SUM,
    TIMES,
    UNARY,
    Language,
    Piece,
    calls,
    function,
    operators,
    template,
    write,
)
from gradcli.program.ir import Equation, Program

# Words that a column cannot be called without quotes, in one database or another.
_RESERVED = frozenset(
    """all and any as asc between by case check column constraint create cross current_date current_time
    current_user default delete desc distinct do drop else end except exists false fetch for foreign from full
    grant group having in index inner insert intersect interval into is join key left like limit natural not
    null of offset on or order outer primary range rank references right rows select set size sum table then to
    true union unique update user using value values when where with""".split()  # noqa: SIM905
)


def sql(formulas: Formulas) -> Document:
    """The value and its derivatives, of numbers alone, as the columns of a SELECT."""
    columns = {"value": formulas.value} | {identifier("d", key): d for key, d in formulas.derivatives.items()}
    select = "SELECT\n" + ",\n".join(f"    {_expression(p)} AS {name}" for name, p in columns.items())
    return Document(select, {"select": select})


def _expression(program: Program) -> str:
    for variable in program.inputs:
        if variable.shape:
            raise DifferentiationError(
                f"'{variable.name}' is a tensor, and a column has numbers alone", hint="--to python has tensors"
            )
    return write(program, LANGUAGE).result


def column(name: str) -> str:
    """A name of a column, quoted where it must be."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _RESERVED
    return name if plain else f'"{name}"'


def _number(value: Any) -> Piece:
    if arrays.dtype_name(value) == "bool":
        return Piece("(1 = 1)" if value else "(1 = 0)")
    value = float(value)
    if not math.isfinite(value):
        raise DifferentiationError(f"{value} cannot be written as sql, which has no such number")
    if math.copysign(1.0, value) < 0:
        return Piece(f"-{_number(-value).text}", UNARY)
    return Piece(repr(value))


def _array(_constant: Any) -> Piece:
    raise DifferentiationError("a tensor cannot be written as sql, which has numbers alone", hint="--to python can")


def _divided(_equation: Equation, operands: Sequence[Piece]) -> Piece:
    """Of whole numbers / would leave the remainder out."""
    first, second = operands
    above = first.at(PRODUCT)
    if not re.match(r"\d+\.\d", above):
        above = f"1.0*{first.at(TIMES)}"
    return Piece(f"{above}/{second.at(UNARY)}", TIMES)


def _power(equation: Equation, operands: Sequence[Piece]) -> Piece:
    return function("POWER", operands[0].text, _number(equation.params["n"]).text)


LANGUAGE = Language(
    name="sql",
    functions={
        **operators("// % @ **", equal="=", not_equal="<>"),
        **calls("sql", str.upper),
        "divide": _divided,
        "negative": negated,
        "whole_power": _power,
        "reciprocal": template("1.0/{0}", TIMES),
        "rsqrt": lambda _equation, operands: Piece(f"1.0/SQRT({operands[0].text})", TIMES),
        "cbrt": template("(SIGN({0})*POWER(ABS({0}), 1.0/3.0))"),
        "exp2": lambda _equation, operands: function("POWER", "2.0", operands[0].text),
        "expm1": lambda _equation, operands: Piece(f"EXP({operands[0].text}) - 1.0", SUM),
        "log1p": template("LN(1.0 + {0})", inner=PRODUCT),
        "log2": lambda _equation, operands: Piece(f"LN({operands[0].text})/LN(2.0)", TIMES),
        "log10": lambda _equation, operands: Piece(f"LN({operands[0].text})/LN(10.0)", TIMES),
        "sigmoid": template("1.0/(1.0 + EXP(-{0}))", TIMES),
        "logsigmoid": template("-LN(1.0 + EXP(-{0}))", UNARY),
        "softplus": template("LN(1.0 + EXP({0}))"),
        "logaddexp": lambda _equation, operands: Piece(f"LN(EXP({operands[0].text}) + EXP({operands[1].text}))"),
        "hypot": template("SQRT({0}*{0} + {1}*{1})"),
        "relu": template("CASE WHEN {0} > 0.0 THEN {0} ELSE 0.0 END"),
        "maximum": template("CASE WHEN {0} >= {1} THEN {0} ELSE {1} END"),
        "minimum": template("CASE WHEN {0} <= {1} THEN {0} ELSE {1} END"),
        "clip": template("CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END"),
        "remainder": template("{0} - {1}*FLOOR(1.0*{0}/{1})", SUM),
        "floor_divide": template("FLOOR(1.0*{0}/{1})"),
        "where": lambda _equation, operands: Piece(
            "CASE WHEN {} THEN {} ELSE {} END".format(*(o.text for o in operands))
        ),
        "xlogy": template("CASE WHEN {0} = 0.0 THEN 0.0 ELSE {0}*LN({1}) END"),
        "logical_and": template("({0} AND {1})"),
        "logical_or": template("({0} OR {1})"),
        "logical_not": template("NOT {0}", COMPARE),
        "one_minus_square": template("(1.0 - {0})*(1.0 + {0})", TIMES),
        "identity": lambda _equation, operands: operands[0],
        "cast": lambda _equation, operands: operands[0],
        "zeros_like": lambda _equation, _operands: Piece("0.0"),
        "ones_like": lambda _equation, _operands: Piece("1.0"),
    },
    number=_number,
    array=_array,
    document=sql,
    variable=column,
    parts=False,
)
