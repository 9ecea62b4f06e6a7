"""Code generation: programs as Polars expressions, one column for each."""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.formulas.languages.text import negated
from gradcli.formulas.writing.documents import SHORT, Document, Formulas, identifier, merge_programs, one_line
from gradcli.formulas.writing.naming import Names, Naming, inputs_read_by, names_of, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    POWER,
    SUM,
    TANHSHRINK,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    Spelling,
    SpellingWithPart,
    by_part,
    by_powers_of_two,
    clipped,
    comparisons_without_nan,
    expect_numbers,
    function,
    infix,
    operators,
    template,
    write,
)
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Element, Equation, Key, Variable


def polars(formulas: Formulas) -> Document:
    """The value and its derivatives as Polars columns, with common subexpressions named. Raises DifferentiationError
    for tensor inputs."""
    expect_numbers(formulas.value, "a column")
    formulas = stable(formulas, LANGUAGE)
    names, results = names_of(formulas.value, _NAMING), Names(_NAMING)
    programs = {"value": formulas.value} | {identifier("d", key): d for key, d in formulas.derivatives.items()}
    written = write(merge_programs([*programs.values()]), LANGUAGE, names, short=SHORT)
    chooses = any("pl.when(" in text for text in [*written.results, *(text for _, text in written.parts)])
    columns = {}
    for (name, program), text in zip(programs.items(), written.results):
        needed = [names.inputs[n] for n in inputs_read_by(program)] if chooses else []
        columns[results.new(name)] = _with_nulls(text, needed)
    read = {names.inputs[v.name or ""]: _column(v, names) for v in formulas.value.inputs}
    lines = [
        f"# {one_line(' '.join(formulas.source.split()))} and its derivatives: frame.with_columns(**columns)",
        "import polars as pl",
        "",
        *(
            f"{name} = pl.col({json.dumps(column, ensure_ascii=False)}).cast(pl.Float64)"
            for name, column in read.items()
        ),
        *(f"{name} = {text}" for name, text in written.parts),
        "columns = {",
        *(f"    {json.dumps(name, ensure_ascii=False)}: {text}," for name, text in columns.items()),
        "}",
    ]
    code = "\n".join(lines)
    return Document(code, {"expressions": code})


def _with_nulls(text: str, columns: Sequence[str]) -> str:
    """An expression that is null where one of `columns` is null: a `when` condition on a null counts as false."""
    if not columns:
        return text
    there = " & ".join(f"{column}.is_not_null()" for column in columns)
    return f"pl.when({there}).then({text})"


def _column(variable: Variable, names: Names) -> str:
    """The column name of an input: the user's name; for an element of a tensor, the name with its indices as in SQL."""
    name = variable.name or ""
    return names.inputs[name] if isinstance(variable, Element) else name


def _elements(tensor: str, key: Key) -> Iterator[str]:
    return _spellings("_".join([tensor, *map(str, key)]))


def _spellings(name: str) -> Iterator[str]:
    taken = ("pl", "columns", "float", "__debug__")
    return with_underscores(name, lambda spelled: keyword.iskeyword(spelled) or spelled in taken)


def _number(value: Any) -> Fragment:
    if arrays.dtype_name(value) == "bool":
        return Fragment(f"pl.lit({bool(value)})")
    value = float(value)
    if not math.isfinite(value):
        return Fragment(f'pl.lit(float("{value}"))')
    if math.copysign(1.0, value) < 0:
        return Fragment(f"-{_number(-value).text}", UNARY, plain=True)
    return Fragment(repr(value), plain=True)


def _array(_constant: Any) -> Fragment:
    raise DifferentiationError("a tensor cannot be written as polars, which has columns", hint="--to python can")


def _as_expression(piece: Fragment) -> Fragment:
    """A piece as an expression: Python numbers lack its methods, and Python would compute an operation on two
    numbers."""
    return Fragment(f"pl.lit({piece.text})") if piece.plain else piece


def _of_expressions(spelling: Spelling) -> Spelling:
    return lambda equation, operands: spelling(equation, [*map(_as_expression, operands)])


def _template(text: str, level: int = ATOM) -> Spelling:
    return _of_expressions(template(text, level))


def _operator(symbol: str, level: int) -> Spelling:
    """An operator whose operands are not both Python numbers, which Python would compute itself."""
    spelling = infix(symbol, level)

    def spelled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        first, second = operands
        return spelling(equation, [_as_expression(first) if second.plain else first, second])

    return spelled


def _by_rest(form: str) -> SpellingWithPart:
    """A function of period 2, applied to its operand reduced modulo 2."""
    spelling = by_part("({0} - 2.0*({0}/2.0).round())", form)
    return lambda equation, operands, part: spelling(equation, [*map(_as_expression, operands)], part)


def _power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"{_as_expression(operands[0]).at(ATOM)}**{_number(equation.params['n']).at(UNARY)}", POWER)


def _choice(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    condition, x, y = (o.text for o in operands)
    # A choice nested in the last branch becomes further `when` cases.
    others = y.removeprefix("pl") if operands[2].level == ATOM and y.startswith("pl.when(") else f".otherwise({y})"
    return Fragment(f"pl.when({condition}).then({x}){others}")


def _others(primitive: Primitive) -> Spelling | None:
    """The spelling of a primitive that has a Polars method, else None."""
    known = primitive.spelling
    return _template(f"{{0}}.{known['polars'] or primitive.name}()") if "polars" in known else None


_LARGER = _template("pl.when({0} >= {1}).then({0}).otherwise({1})")
# By the negated operands, since -nan counts as the largest number too.
_SMALLER = _template("pl.when(-{0} >= -{1}).then({0}).otherwise({1})")

_NAMING = Naming(_spellings, elements=_elements)

LANGUAGE = Language(
    name="polars",
    functions={
        **operators("// % @", form=_operator),
        **comparisons_without_nan("(({0}) & {1}.is_not_nan())", _operator),
        "not_equal": _template("(({0} != {1}) | {0}.is_nan())"),
        "negative": negated,
        "whole_power": _power,
        "reciprocal": _template("1.0/{0}", TIMES),
        "atan2": _of_expressions(lambda _equation, operands: function("pl.arctan2", *(o.text for o in operands))),
        "rsqrt": _template("1.0/{0}.sqrt()", TIMES),
        "exp2": _template("2.0**{0}", POWER),
        # exp(x) - 1 loses digits for small x.
        "expm1": _template(
            "pl.when({0}.abs() < 1.0).then(2.0*({0}/2.0).sinh()*({0}/2.0).exp()).otherwise({0}.exp() - 1.0)"
        ),
        "log2": _template("{0}.log(2.0)"),
        "sigmoid": _template("1.0/(1.0 + (-{0}).exp())", TIMES),
        "logsigmoid": _template("{0}.clip(upper_bound=0.0) - (-{0}.abs()).exp().log1p()", SUM),
        "softplus": _template("{0}.clip(0.0) + (-{0}.abs()).exp().log1p()", SUM),
        "logaddexp": _template(
            "pl.when({0} == {1}).then({0} + 0.6931471805599453)"
            ".otherwise(pl.max_horizontal({0}, {1}) + (-({0} - {1}).abs()).exp().log1p())"
        ),
        "logaddexp2": _template(
            "pl.when({0} == {1}).then({0} + 1.0)"
            ".otherwise(pl.max_horizontal({0}, {1}) + (2.0**(-({0} - {1}).abs())).log1p()/0.6931471805599453)"
        ),
        "relu": _template("pl.when({0} > 0.0).then({0}).otherwise(0.0)"),
        "maximum": _LARGER,
        "minimum": _SMALLER,
        "clip": clipped(
            _template("pl.when({0} < {1}).then({1}).when(-{0} < -{2}).then({2}).otherwise({0})"), _LARGER, _SMALLER
        ),
        # Not Polars' remainder of floats, which uses a quotient that may be rounded up to an integer.
        "remainder": by_powers_of_two(_template("{0} - {1}*({0}/{1}).floor()", SUM), None, "polars"),
        "floor_divide": by_powers_of_two(_template("({0}/{1}).floor() + 0.0*{0}", SUM), None, "polars"),
        "where": _choice,
        "xlogy": _template("pl.when(({0} == 0.0) & {1}.is_not_nan()).then(0.0).otherwise({0}*{1}.log())"),
        "isnan": _template("{0}.is_nan()"),
        "isfinite": _template("{0}.is_finite()"),
        "isinf": _template("{0}.is_infinite()"),
        "logical_and": _template("({0} & {1})"),
        "logical_or": _template("({0} | {1})"),
        "logical_not": _template("~{0}", UNARY),
        "one_minus_square": _template("(1.0 - {0})*(1.0 + {0})", TIMES),
        "over_one_plus_square": _template("1.0/(1.0 + {0}*{0})", TIMES),
        "sech": _template("1.0/{0}.cosh()", TIMES),
        "csch": _template("1.0/{0}.sinh()", TIMES),
        "coth": _template("1.0/{0}.tanh()", TIMES),
        "softsign": _template("{0}/(1.0 + {0}.abs())", TIMES),
        "tanhshrink": _template(f"pl.when({{0}}.abs() < 0.01).then({TANHSHRINK}).otherwise({{0}} - {{0}}.tanh())"),
        "sech_square": _template("{0}.cosh()**-2.0", POWER),
        "logcosh": _template(
            "pl.when({0}.abs() < 1.0).then((2.0*({0}/2.0).sinh()**2.0).log1p())"
            ".otherwise({0}.abs() + (-2.0*{0}.abs()).exp().log1p() - 0.6931471805599453)"
        ),
        "identity": lambda _equation, operands: operands[0],
        "cast": lambda _equation, operands: operands[0],
        "zeros_like": lambda _equation, _operands: _number(0.0),
        "ones_like": lambda _equation, _operands: _number(1.0),
    },
    with_parts={
        "sinpi": _by_rest("(3.141592653589793*pl.when({0}.abs() > 0.5).then({0}.sign() - {0}).otherwise({0})).sin()"),
        "cospi": _by_rest("(3.141592653589793*(0.5 - {0}.abs())).sin()"),
    },
    others=_others,
    number=_number,
    array=_array,
    document=polars,
    naming=_NAMING,
    tensors=False,
    truths=BooleanConversion(
        lambda truth: Fragment(f"{truth.at(ATOM)}.cast(pl.Float64)"),
        lambda number: Fragment(f"{number.at(SUM)} != 0.0", COMPARE),
    ),
)
