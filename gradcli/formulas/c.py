"""Programs as functions of C99."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.formulas.documents import separate_functions
from gradcli.formulas.text import negated
from gradcli.formulas.writing import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    SUM,
    TIMES,
    UNARY,
    Language,
    Piece,
    calls,
    function,
    names,
    operators,
    template,
    write,
)
from gradcli.program.ir import Equation, Program

# Keywords, what is called in the spellings below, and what else math.h may bring.
_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    INFINITY NAN main j0 j1 jn y0 y1 yn gamma signgam""".split()  # noqa: SIM905
).union(names("c").values())


def c(program: Program, *, name: str, doc: str, short: int) -> str:
    """A program with one output, of numbers alone, as a function of doubles."""
    for variable in program.inputs:
        if variable.shape:
            raise DifferentiationError(
                f"'{variable.name}' is a tensor, and C has numbers alone", hint="--to python has tensors"
            )
    written = write(program, LANGUAGE, short=short)
    parameters = ", ".join(f"double {LANGUAGE.variable(v.name or '')}" for v in program.inputs) or "void"
    body = [*(f"const double {n} = {part};" for n, part in written.parts), f"return {written.result};"]
    lines = [
        f"/* {doc.replace('*/', '* /')} */",
        f"double {_variable(name)}({parameters})",
        "{",
        *(f"    {line}" for line in body),
        "}",
    ]
    return "\n".join(["#include <math.h>", "", *lines])


def number(value: Any) -> Piece:
    """A floating constant: 1/2 of whole numbers would be 0."""
    if arrays.dtype_name(value) == "bool":
        return Piece("1" if value else "0")
    value = float(value)
    if value != value:
        return Piece("NAN")
    if math.copysign(1.0, value) < 0:
        return Piece(f"-{number(-value).text}", UNARY)
    return Piece("INFINITY" if value == math.inf else repr(value))


def _array(_constant: Any) -> Piece:
    raise DifferentiationError("a tensor cannot be written as C, which has numbers alone", hint="--to python can")


def _variable(name: str) -> str:
    if not name.isascii():
        name = "".join(ch if ch.isascii() else f"u{ord(ch):04x}" for ch in name)
    return f"{name}_" if name in _RESERVED else name


def whole_power(equation: Equation, operands: Sequence[Piece]) -> Piece:
    base, n = operands[0], equation.params["n"]
    if n == 2 and base.text.isidentifier():
        return Piece(f"{base.text}*{base.text}", TIMES)
    return function("pow", base.text, number(n).text)


# What C lacks, by what it has; every function of one operand is called with its text in parentheses.
FORMULAS = {
    "reciprocal": template("1.0/{0}", TIMES),
    "sigmoid": template("1.0/(1.0 + exp(-{0}))", TIMES),
    "logsigmoid": template("fmin({0}, 0.0) - log1p(exp(-fabs({0})))", SUM),
    "softplus": template("fmax({0}, 0.0) + log1p(exp(-fabs({0})))", SUM),
    "logaddexp": template("fmax({0}, {1}) + log1p(exp(-fabs({0} - {1})))", SUM),
    "relu": template("fmax({0}, 0.0)"),
    "sign": template("(({0} > 0.0) - ({0} < 0.0))"),
    "floor_divide": template("floor({0}/{1})"),
    "remainder": template("{0} - {1}*floor({0}/{1})", SUM),
    "clip": template("fmin(fmax({0}, {1}), {2})"),
    "where": template("{0} ? {1} : {2}", CONDITIONAL, inner=COMPARE),
    "xlogy": template("{0} == 0.0 ? 0.0 : {0}*log({1})", CONDITIONAL),
    "xlog1py": template("{0} == 0.0 ? 0.0 : {0}*log1p({1})", CONDITIONAL),
    "sinc": lambda equation, operands: _sinc(equation, operands),
    "zeros_like": lambda _equation, _operands: Piece("0.0"),
    "ones_like": lambda _equation, _operands: Piece("1.0"),
}


def _sinc(equation: Equation, operands: Sequence[Piece]) -> Piece:
    x = operands[0].at(ATOM)
    pi = repr(math.pi)
    assert equation.params["n"] == 0
    return Piece(f"{x} == 0.0 ? 1.0 : sin({pi}*{x})/({pi}*{x})", CONDITIONAL)


LANGUAGE = Language(
    name="c",
    functions={
        **operators("// % @ **"),
        **calls("c"),
        **FORMULAS,
        "rsqrt": lambda _equation, operands: Piece(f"1.0/sqrt({operands[0].text})", TIMES),
        "negative": negated,
        "whole_power": whole_power,
        "logical_and": template("({0} && {1})"),
        "logical_or": template("({0} || {1})"),
        "logical_not": template("!{0}", UNARY),
        "one_minus_square": template("(1.0 - {0})*(1.0 + {0})", TIMES),
        "identity": lambda _equation, operands: operands[0],
        "cast": lambda _equation, operands: operands[0],
    },
    number=number,
    array=_array,
    document=lambda formulas: separate_functions(formulas, c),
    variable=_variable,
    reserved=_RESERVED,
)
