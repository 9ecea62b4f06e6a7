"""Spellings shared by the languages that compute with numbers alone, written once in the notation of C."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.formulas.languages.text import negated, number, sinc
from gradcli.formulas.writing.naming import Names
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    SCALAR_FUNCTIONS,
    SUM,
    TANHSHRINK,
    TIMES,
    UNARY,
    Fragment,
    Language,
    Spelling,
    SpellingWithPart,
    Written,
    calls,
    expect_numbers,
    function,
    plain_call,
    template,
    write,
)
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import cast
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable

# A call in a text of C.
_CALL = re.compile(r"\b([a-z]\w*)\(")


def with_functions(text: str, names: Mapping[str, str]) -> str:
    """A text of C with the names of the functions that it calls replaced by those that another language has."""
    return _CALL.sub(lambda call: f"{names.get(call[1], call[1])}(", text)


def definitions_called(code: str, definitions: Mapping[str, str]) -> list[str]:
    """The definitions, by name, of what a code calls, and of what these call, in the order that they stand in."""
    called: set[str] = set()
    waiting = [code]
    while waiting:
        found = {*re.findall(r"\b\w+(?=\()", waiting.pop())} & definitions.keys()
        waiting += [definitions[name] for name in found - called]
        called |= found
    return [definition for name, definition in definitions.items() if name in called]


def plain_number(names: Mapping[str, str], true: str = "true", false: str = "false") -> Callable[[Any], Fragment]:
    """Writes numbers for a language whose integer literals are floats too; `names` spells pi, e, inf and nan."""

    def written(value: Any) -> Fragment:
        if arrays.dtype_name(value) == "bool":
            return Fragment(true if value else false)
        piece = number(value)
        sign, text = ("-", piece.text[1:]) if piece.text.startswith("-") else ("", piece.text)
        return piece._replace(text=sign + names.get(text, text), plain=True)

    return written


def float_number(inf: str, nan: str, true: str = "true", false: str = "false") -> Callable[[Any], Fragment]:
    """Writes numbers for a language in which a literal without a point is an integer: 1/2 would be 0."""

    def written(value: Any) -> Fragment:
        if arrays.dtype_name(value) == "bool":
            return Fragment(true if value else false)
        value = float(value)
        if value != value:
            return Fragment(nan)
        if math.copysign(1.0, value) < 0:
            return Fragment(f"-{written(-value).text}", UNARY)
        return Fragment(inf if value == math.inf else repr(value))

    return written


def square_or_call(power: str, number: Callable[[Any], Fragment]) -> Spelling:
    """A whole power as a call of the function `power`, and the square of a name or an element as a product."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        base, n = operands[0], equation.params["n"]
        if n == 2 and re.fullmatch(r"\w+(\[\d+\])*", base.text):
            return Fragment(f"{base.text}*{base.text}", TIMES)
        return function(power, base.text, number(n).text)

    return spelling


def write_numbers(program: Program, language: Language, names: Names, place: str, *, short: int = 0) -> Written:
    """A program of numbers in a language, with results that are truth values as 0 and 1. Raises DifferentiationError
    for tensor inputs, which `place` does not have."""
    expect_numbers(program, place)
    equations, outputs = [*program.equations], []
    for output in program.outputs:
        if isinstance(output, Variable) and output.dtype == "bool":
            number_of = Variable((), "float64")
            equations.append(Equation(cast, (output,), {"dtype": "float64"}, number_of))
            outputs.append(number_of)
        else:
            outputs.append(output if isinstance(output, Variable) else arrays.astype(output, "float64"))
    return write(program._replace(equations=tuple(equations), outputs=tuple(outputs)), language, names, short=short)


class ScalarSyntax(NamedTuple):
    """The differences of a language from C: `expression` translates a text with operators and calls as C has them, in
    which isnan(x) is the test for nan and rint rounds halves to even numbers; `choose` makes the template of a
    conditional expression from those of its condition and branches, and `level` is its precedence."""

    expression: Callable[[str], str]
    choose: Callable[[str, str, str], str]
    level: int


class _Formula(NamedTuple):
    """A template of C, its precedence, and the precedence its operands need."""

    text: str
    level: int
    inner: int = ATOM


class _Choice(NamedTuple):
    """The templates of a condition and of its two branches."""

    condition: str
    then: str
    otherwise: str
    inner: int = ATOM


_FORMULAS: Mapping[str, _Formula | _Choice] = {
    "sigmoid": _Formula("1.0/(1.0 + exp(-{0}))", TIMES),
    "logsigmoid": _Formula("fmin({0}, 0.0) - log1p(exp(-fabs({0})))", SUM),
    "softplus": _Formula("fmax({0}, 0.0) + log1p(exp(-fabs({0})))", SUM),
    # The equal case comes first: the difference of two equal infinities is nan.
    "logaddexp": _Choice("{0} == {1}", "{0} + 0.6931471805599453", "fmax({0}, {1}) + log1p(exp(-fabs({0} - {1})))"),
    "logaddexp2": _Choice(
        "{0} == {1}", "{0} + 1.0", "fmax({0}, {1}) + log1p(exp2(-fabs({0} - {1})))/0.6931471805599453"
    ),
    "logcosh": _Choice(
        "fabs({0}) < 1.0",
        "log1p(2.0*pow(sinh({0}/2.0), 2.0))",
        "fabs({0}) + log1p(exp(-2.0*fabs({0}))) - 0.6931471805599453",
    ),
    "sech": _Formula("1.0/cosh({0})", TIMES),
    "csch": _Formula("1.0/sinh({0})", TIMES),
    "coth": _Formula("1.0/tanh({0})", TIMES),
    "sech_square": _Formula("pow(cosh({0}), -2.0)", ATOM),
    "softsign": _Formula("{0}/(1.0 + fabs({0}))", TIMES),
    "tanhshrink": _Choice("fabs({0}) < 0.01", TANHSHRINK, "{0} - tanh({0})"),
    "relu": _Choice("{0} < 0.0", "0.0", "{0}", SUM),
    # Not fmax and fmin, which ignore nan.
    "maximum": _Choice("{0} > {1} || isnan({0})", "{0}", "{1}", SUM),
    "minimum": _Choice("{0} < {1} || isnan({0})", "{0}", "{1}", SUM),
    "xlogy": _Choice("{0} == 0.0 && {1} == {1}", "0.0", "{0}*log({1})"),
    "xlog1py": _Choice("{0} == 0.0 && {1} == {1}", "0.0", "{0}*log1p({1})"),
    "rsqrt": _Formula("1.0/sqrt({0})", TIMES, CONDITIONAL),
    "reciprocal": _Formula("1.0/{0}", TIMES),
    "one_minus_square": _Formula("(1.0 - {0})*(1.0 + {0})", TIMES),
    "over_one_plus_square": _Formula("1.0/(1.0 + {0}*{0})", TIMES),
}


def scalar_functions(syntax: ScalarSyntax) -> dict[str, Spelling]:
    """The spellings of functions that are formulas of others, and of signs and logical operators as in C."""
    return {
        **SCALAR_FUNCTIONS,
        "negative": negated,
        "logical_and": template("({0} && {1})"),
        "logical_or": template("({0} || {1})"),
        "logical_not": template("!{0}", UNARY),
        "where": _where(syntax),
        **{name: _spelling(formula, syntax) for name, formula in _FORMULAS.items()},
    }


def _where(syntax: ScalarSyntax) -> Spelling:
    form = syntax.choose("{0}", "{1}", "{2}")

    def spelling(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        condition, then, otherwise = operands
        texts = condition.at(COMPARE), then.at(COMPARE), otherwise.at(CONDITIONAL)
        return Fragment(form.format(*texts), syntax.level)

    return spelling


def _spelling(formula: _Formula | _Choice, syntax: ScalarSyntax) -> Spelling:
    if isinstance(formula, _Formula):
        return template(syntax.expression(formula.text), formula.level, inner=formula.inner)
    condition, *branches = map(syntax.expression, formula[:3])
    return template(syntax.choose(condition, *branches), syntax.level, inner=formula.inner)


def scalar_parts(syntax: ScalarSyntax) -> dict[str, SpellingWithPart]:
    """The spellings of functions that use a part of them several times."""

    def chosen(condition: str, then: str, otherwise: str) -> str:
        """A conditional expression of texts, not of templates."""
        return syntax.choose("{0}", "{1}", "{2}").format(condition, then, otherwise)

    def translated(text: str, *operands: str) -> str:
        return syntax.expression(text).format(*operands)

    def clip(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        x, lower, upper = (o.at(SUM) for o in operands)
        x = part(chosen(translated("{0} < {1} || isnan({1})", x, lower), lower, x))
        return Fragment(chosen(translated("{0} > {1} || isnan({1})", x, upper), upper, x), syntax.level)

    def remainder(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        """The remainder with the sign of the divisor; fmod computes it without rounding."""
        rest, y = part(translated("fmod({0}, {1})", operands[0].text, operands[1].text)), operands[1].at(SUM)
        return Fragment(chosen(translated(_OTHER_SIGN, rest, y), f"{rest} + {y}", rest), syntax.level)

    def floor_divide(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        x, y = (o.at(ATOM) for o in operands)
        rest = part(translated("fmod({0}, {1})", operands[0].text, operands[1].text))
        whole = part(translated("rint(({0} - {1})/{2})", x, rest, y))
        floored = chosen(translated(_OTHER_SIGN, rest, y), translated("{0} - 1.0", whole), whole)
        return Fragment(chosen(translated("{0} == 0.0", y), translated("{0}/{1}", x, y), floored), syntax.level)

    def wave(name: str, x: str) -> str:
        if name != "sinc":
            return translated(f"{name}({{0}})", x)
        x = x if x.isidentifier() else f"({x})"
        by_x = translated(f"sin({math.pi!r}*{{0}})/({math.pi!r}*{{0}})", x)
        return f"({chosen(translated('{0} == 0.0', x), translated('1.0'), by_x)})"

    def sinpi(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        rest = _turn(operands[0], part)
        nearest = part(chosen(translated("fabs({0}) > 0.5", rest), translated("copysign(1.0, {0}) - {0}", rest), rest))
        return Fragment(translated(f"sin({math.pi!r}*{{0}})", nearest))

    def cospi(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        return Fragment(translated(f"sin({math.pi!r}*(0.5 - fabs({{0}})))", _turn(operands[0], part)))

    def _turn(operand: Fragment, part: Callable[[str], str]) -> str:
        """The operand of a function of period 2 reduced modulo 2, which is exact."""
        return part(translated("{0} - 2.0*rint({0}/2.0)", operand.at(ATOM)))

    return {
        "clip": clip,
        "remainder": remainder,
        "floor_divide": floor_divide,
        "sinc": sinc(wave, lambda value: Fragment(translated(repr(float(value))))),
        "sinpi": sinpi,
        "cospi": cospi,
    }


_OTHER_SIGN = "{0} != 0.0 && ({0} < 0.0) != ({1} < 0.0)"


def called_in_c(names: Mapping[str, str], primitive: Primitive) -> str:
    """The name that a language has, by `names`, for the function that C calls; "" if it has none."""
    return names.get(primitive.spelling.get("c", ""), "")


def no_array(language: str) -> Callable[[Any], Fragment]:
    """Raises DifferentiationError for a constant tensor."""

    def refused(_constant: Any) -> Fragment:
        raise DifferentiationError(
            f"a tensor cannot be written as {language}, which has numbers alone", hint="--to python can"
        )

    return refused


def real_calls(language: str, names: Mapping[str, str], power: Spelling) -> Callable[[Primitive], Spelling | None]:
    """Calls by `names`, in which `real_sqrt` and its like are defined to be nan where sqrt is not real; of a positive
    constant they are written as sqrt, and its `power` with the operator."""
    others = calls(language, partial(called_in_c, names))

    def spelling(primitive: Primitive) -> Spelling | None:
        found, called = others(primitive), called_in_c(names, primitive)
        if found is None or not called.startswith("real_"):
            return found
        real = power if primitive.name == "pow" else plain_call(language, called.removeprefix("real_"))
        return lambda equation, operands: (real if _is_positive(equation.inputs[0]) else found)(equation, operands)

    return spelling


def _is_positive(atom: Atom) -> bool:
    return not isinstance(atom, Variable) and float(atom) > 0
