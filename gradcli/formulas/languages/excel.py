"""Code generation: programs as formulas of Excel and LibreOffice Calc, over cells that have names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.errors import DifferentiationError, LimitError
from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    no_array,
    plain_number,
    scalar_functions,
    with_functions,
    write_numbers,
)
from gradcli.formulas.writing.documents import Document, Formulas, identifier
from gradcli.formulas.writing.naming import Names, Naming, names_of, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    POWER,
    PRODUCT,
    SUM,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    Spelling,
    UnsupportedPrimitiveError,
    by_powers_of_two,
    clipped,
    negated_piece,
    operators,
    template,
)
from gradcli.program.ir import Equation, Key, Variable

# The limits of a formula in Excel: its characters, and the depth of calls within calls.
_LONGEST = 8192
_DEEPEST = 64

# Functions by their names in C, for spellings that are formulas of others.
_CALLED = {
    "exp": "EXP", "log": "LN", "sqrt": "SQRT", "fabs": "ABS", "fmin": "MIN", "fmax": "MAX", "pow": "POWER", "sin": "SIN",
    "cos": "COS", "sinh": "SINH", "cosh": "COSH", "tanh": "TANH",
}  # fmt: skip
# Functions of one number under their own names.
_SAME = """exp sqrt abs sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh log10 erf erfc gamma""".split()  # noqa: SIM905

# log(1 + x) without the rounding of 1 + x, for x from -0.5 to 1.
_LOG1P = "2*ATANH({0}/(2+{0}))"
_SOFT = _LOG1P.format("EXP(-ABS({0}))")
_SOFT_DIFFERENCE = _LOG1P.format("EXP(-ABS({0}-{1}))")
_SOFT2_DIFFERENCE = _LOG1P.format("POWER(2,-ABS({0}-{1}))")
_REST = "({0}-2*ROUND({0}/2,0))"
# A negative number to the power 1/3 is real there; an error stands for nan, as in the root of a negative number.
_POWER = "IF({0}<0,IF({1}=INT({1}),POWER({0},{1}),SQRT(-1)),POWER({0},{1}))"

# R and C are the row and the column of a cell, LOG10 and x1 are cells.
_CELL = re.compile(r"[a-z]{1,3}\d+|r\d*(c\d*)?|c\d*|true|false", re.IGNORECASE)


def excel(formulas: Formulas) -> Document:
    """The value and the derivatives as lines of a name and a formula, which a spreadsheet pastes into two columns.
    Raises DifferentiationError for tensor inputs, and LimitError for formulas that are too long."""
    formulas = stable(formulas, LANGUAGE)
    names, results = names_of(formulas.value, _NAMING), Names(_NAMING)
    programs = {"value": formulas.value} | {identifier("d", key): d for key, d in formulas.derivatives.items()}
    cells = {}
    for name, program in programs.items():
        text = f"={write_numbers(program, LANGUAGE, names, 'a cell').result}"
        if len(text) > _LONGEST or _depth(text) > _DEEPEST:
            raise LimitError(
                f"a formula of a spreadsheet has at most {_LONGEST:,} characters and {_DEEPEST} levels of calls",
                hint="--to text and --to python give names to its parts",
            )
        cells[results.new(name)] = text
    renamed = {cell: f"stands for {name}" for name, cell in names.inputs.items() if cell != name}
    return Document("\n".join(f"{name}\t{text}" for name, text in (cells | renamed).items()), {"cells": cells})


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _finite(value: Any) -> Fragment:
    if not math.isfinite(value):
        raise DifferentiationError(f"{float(value)} cannot be written as excel, which has no such number")
    return _number(value)


def _negated(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A sign binds tighter than ^ there: -x^2 is the square of -x."""
    piece = operands[0]
    return Fragment(f"-({piece.text})", UNARY) if "^" in piece.text else negated_piece(piece)


def _whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"{operands[0].at(ATOM)}^{_number(equation.params['n']).at(UNARY)}", POWER)


def _power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    base, exponent = equation.inputs
    if not isinstance(base, Variable) and float(base) > 0:
        return template("POWER({0},{1})", inner=CONDITIONAL)(equation, operands)
    if not isinstance(exponent, Variable):
        form = "POWER({0},{1})" if float(exponent).is_integer() else "IF({0}<0,SQRT(-1),POWER({0},{1}))"
        return template(form, inner=SUM)(equation, operands)
    return template(_POWER, inner=SUM)(equation, operands)


def _sinc(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    if equation.params["n"]:
        raise UnsupportedPrimitiveError(equation, "excel")
    return template("IF({0}=0,1,SIN(PI()*{0})/(PI()*{0}))", inner=ATOM)(equation, operands)


def _infix(symbol: str, level: int) -> Spelling:
    """An operator without spaces, which in a formula intersect ranges."""
    sides = {COMPARE: (SUM, SUM), SUM: (SUM, PRODUCT), TIMES: (PRODUCT, UNARY)}[level]

    def spelling(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        first, second = (o.at(side) for o, side in zip(operands, sides))
        return Fragment(f"{first}{symbol}{second}", level)

    return spelling


def _expression(text: str) -> str:
    text = re.sub(r"(\d)\.0\b", r"\1", with_functions(text, _CALLED))
    return text.replace(" ", "").replace("==", "=").replace("!=", "<>")


def _spellings(name: str) -> Iterator[str]:
    return with_underscores(name, lambda spelled: _CELL.fullmatch(spelled) is not None)


def _elements(name: str, key: Key) -> Iterator[str]:
    return _spellings("_".join([name, *map(str, key)]))


_NAMING = Naming(_spellings, str.casefold, _elements)
_number = plain_number({"pi": "PI()", "e": "EXP(1)"}, "TRUE", "FALSE")
_SYNTAX = ScalarSyntax(_expression, "IF({},{},{})".format, ATOM)
_LARGER = template("IF({0}>={1},{0},{1})", inner=SUM)
_SMALLER = template("IF({0}<={1},{0},{1})", inner=SUM)

LANGUAGE = Language(
    name="excel",
    functions={
        **operators("// % @ **", form=_infix, equal="=", not_equal="<>"),
        **scalar_functions(_SYNTAX),
        **{name: template(f"{name.upper()}({{0}})", inner=CONDITIONAL) for name in _SAME},
        "negative": _negated,
        "whole_power": _whole_power,
        "pow": _power,
        "log": template("LN({0})", inner=CONDITIONAL),
        "log2": template("LN({0})/LN(2)", TIMES, inner=CONDITIONAL),
        "exp2": template("POWER(2,{0})", inner=CONDITIONAL),
        "expm1": template("IF(ABS({0})<1,2*SINH({0}/2)*EXP({0}/2),EXP({0})-1)"),
        "log1p": template(f"IF(ABS({{0}})<0.5,{_LOG1P},LN(1+{{0}}))"),
        "cbrt": template("SIGN({0})*POWER(ABS({0}),1/3)", TIMES, inner=CONDITIONAL),
        # The squares of small numbers would be 0.
        "hypot": template("IF({0}=0,ABS({1}),ABS({0})*SQRT(1+({1}/{0})^2))"),
        # The arguments are x and y there.
        "atan2": template("ATAN2({1},{0})", inner=CONDITIONAL),
        "floor": template("INT({0})", inner=CONDITIONAL),
        "ceil": template("-INT(-{0})", UNARY),
        "trunc": template("TRUNC({0})", inner=CONDITIONAL),
        "round": template("IF(ABS({0}-TRUNC({0}))=0.5,2*ROUND({0}/2,0),ROUND({0},0))"),
        "copysign": template("IF({1}<0,-ABS({0}),ABS({0}))", inner=SUM),
        "sign": template("SIGN({0})", inner=CONDITIONAL),
        "flat_sqrt": template("SQRT({0})", inner=CONDITIONAL),
        # An infinity is an error there, as nan is.
        "isfinite": template("ISNUMBER({0})", inner=CONDITIONAL),
        # EXP of large numbers is an error, and of small ones 0.
        "sigmoid": template("IF({0}<0,EXP({0})/(1+EXP({0})),1/(1+EXP(-{0})))"),
        "logsigmoid": template(f"MIN({{0}},0)-{_SOFT}", SUM),
        "softplus": template(f"MAX({{0}},0)+{_SOFT}", SUM),
        "logaddexp": template(f"MAX({{0}},{{1}})+{_SOFT_DIFFERENCE}", SUM),
        "logaddexp2": template(f"MAX({{0}},{{1}})+{_SOFT2_DIFFERENCE}/LN(2)", SUM),
        "logcosh": template(
            f"IF(ABS({{0}})<1,{_LOG1P.format('(2*SINH({0}/2)^2)')},"
            f"ABS({{0}})+{_LOG1P.format('EXP(-2*ABS({0}))')}-LN(2))"
        ),
        "sech": template("2*EXP(-ABS({0}))/(1+EXP(-2*ABS({0})))", TIMES),
        "sech_square": template("(2*EXP(-ABS({0}))/(1+EXP(-2*ABS({0}))))^2", POWER),
        "maximum": _LARGER,
        "minimum": _SMALLER,
        "clip": clipped(template("IF({0}<{1},{1},IF({0}>{2},{2},{0}))", inner=SUM), _LARGER, _SMALLER),
        "remainder": by_powers_of_two(template("{0}-{1}*INT({0}/{1})", SUM), None, "excel"),
        "floor_divide": by_powers_of_two(template("INT({0}/{1})"), None, "excel"),
        "sinc": _sinc,
        "sinpi": template(f"SIN(PI()*IF(ABS({_REST})>0.5,SIGN({_REST})-{_REST},{_REST}))"),
        "cospi": template(f"SIN(PI()*(0.5-ABS({_REST})))"),
        "xlogy": template("IF({0}=0,0,{0}*LN({1}))"),
        "xlog1py": template(f"IF({{0}}=0,0,{{0}}*IF(ABS({{1}})<0.5,{_LOG1P.format('{1}')},LN(1+{{1}})))"),
        # AND computes both operands, of which the second may be an error.
        "logical_and": template("IF({0},{1},FALSE)", inner=CONDITIONAL),
        "logical_or": template("IF({0},TRUE,{1})", inner=CONDITIONAL),
        "logical_not": template("NOT({0})", inner=CONDITIONAL),
    },
    number=_finite,
    array=no_array("a spreadsheet"),
    document=excel,
    naming=_NAMING,
    parts=False,
    tensors=False,
    truths=BooleanConversion(
        lambda truth: Fragment(f"IF({truth.text},1,0)"),
        lambda number: Fragment(f"{number.at(SUM)}<>0", COMPARE),
    ),
)
