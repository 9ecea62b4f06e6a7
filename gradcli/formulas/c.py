"""Code generation: programs as functions of C99."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import DifferentiationError
from gradcli.formulas.documents import Code, Document, Formulas, functions
from gradcli.formulas.naming import Names, Naming, with_underscores
from gradcli.formulas.stability import stable
from gradcli.formulas.text import negated, sinc
from gradcli.formulas.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    SCALAR_FUNCTIONS,
    SUM,
    TANHSHRINK,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    by_part,
    calls,
    expect_numbers,
    function,
    operators,
    template,
    write,
)
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Program

# Names that an identifier must not take: keywords of C, C++ and GNU C, predefined macros, macros and variables of the
# standard headers, and the functions that the spellings below call.
_RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if
    import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq override
    private protected public register reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    linux unix i386 arm mips mipsel sparc sun sgi vax hpux hppa m68k mc68000 powerpc ppc PPC pixel vector
    far near huge cdecl pascal fortran complex imaginary noreturn
    BIG_ENDIAN BUFSIZ BYTE_ORDER CMPLX CMPLXF CMPLXL DOMAIN EOF HUGE I INFINITY LITTLE_ENDIAN MAXFLOAT NAN NULL
    OVERFLOW PDP_ENDIAN PLOSS SING TLOSS UNDERFLOW X_TLOSS
    alloca assert environ errno fpclassify isfinite isgreater isgreaterequal isinf isless islessequal
    islessgreater isnan isnormal isunordered iszero main math_errhandling offsetof setjmp signbit stderr stdin stdout
    j0 j1 jn y0 y1 yn gamma signgam fmod rint remainder""".split()  # noqa: SIM905
).union(e.spelling["c"] for e in table.entries() if isinstance(e, Primitive) and "c" in e.spelling)
# Patterns of macros: M_PI, M_PIf, FP_NAN, INT_MAX; names that errno.h and signal.h reserve; HUGE_VALF.
_MACROS = re.compile(
    r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+(f|l|f\d+x?)?|E[A-Z0-9]{2,}|SIG[A-Z0-9]+|(HUGE_VAL|SNAN)(_?F\d+X?|[FL])?|NZERO|NSIG"
)
# Names with this beginning are reserved for the compiler; only lower-case parameters may begin with an underscore.
_COMPILERS = re.compile("_[A-Z_]")
# Characters to escape: those outside ASCII, and the letters u and U where they would read as an escape.
_ESCAPE = re.compile("u(?=[0-9a-f]{4})|U(?=[0-9a-f]{8})|[^\x00-\x7f]")


def c(program: Program, names: Names, *, name: str, doc: str, short: int) -> Code:
    """A program of scalars as a function of doubles; with several outputs it fills an array parameter.
    Raises DifferentiationError for tensor inputs."""
    expect_numbers(program, "C")
    parameters = [*itertools.starmap(_parameter, names.parameters.items())]
    results = names.new("results")
    written = write(program, LANGUAGE, names, short=short)
    read = names.read_by(program)
    body = [f"(void){parameter};" for parameter in names.parameters if parameter not in read]
    body += [f"const double {n} = {part};" for n, part in written.parts]
    if len(written.results) == 1:
        kind, body = "double", [*body, f"return {written.result};"]
    else:
        kind, body = "void", [*body, *(f"{results}[{i}] = {text};" for i, text in enumerate(written.results))]
        parameters.append(f"double {results}[{len(written.results)}]")
    lines = [
        f"/* {doc.replace('*/', '* /').replace('/*', '/ *')} */",
        f"{kind} {name}({', '.join(parameters) or 'void'})",
        "{",
        *(f"    {line}" for line in body),
        "}",
    ]
    return Code(["#include <math.h>"], "\n".join(lines))


def _parameter(name: str, shape: Shape) -> str:
    return f"{'const ' if shape else ''}double {name}{''.join(f'[{size}]' for size in shape)}"


def _elements(name: str, key: Sequence[int]) -> Iterator[str]:
    yield name + "".join(f"[{i}]" for i in key)


def _number(value: Any) -> Fragment:
    """A floating-point constant: 1/2 of integers would be 0 in C."""
    if arrays.dtype_name(value) == "bool":
        return Fragment("1" if value else "0")
    value = float(value)
    if value != value:
        return Fragment("NAN")
    if math.copysign(1.0, value) < 0:
        return Fragment(f"-{_number(-value).text}", UNARY)
    return Fragment("INFINITY" if value == math.inf else repr(value))


def _array(_constant: Any) -> Fragment:
    raise DifferentiationError("a tensor cannot be written as C, which has numbers alone", hint="--to python can")


def _spellings(name: str) -> Iterator[str]:
    name = _ESCAPE.sub(_escaped, name)
    return with_underscores(f"v{name}" if _COMPILERS.match(name) else name, _is_taken)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"u{code:04x}" if code < 0x10000 else f"U{code:08x}"


def _is_taken(name: str) -> bool:
    return name in _RESERVED or _MACROS.fullmatch(name) is not None


def _whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    base, n = operands[0], equation.params["n"]
    if n == 2 and re.fullmatch(r"\w+(\[\d+\])*", base.text):
        return Fragment(f"{base.text}*{base.text}", TIMES)
    return function("pow", base.text, _number(n).text)


def _clip(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
    x, lower, upper = (o.at(SUM) for o in operands)
    x = part(f"{x} < {lower} || {lower} != {lower} ? {lower} : {x}")
    return Fragment(f"{x} > {upper} || {upper} != {upper} ? {upper} : {x}", CONDITIONAL)


def _remainder(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
    """The remainder with the sign of the divisor; fmod computes it without rounding."""
    rest, y = part(f"fmod({operands[0].text}, {operands[1].text})"), operands[1].at(SUM)
    return Fragment(f"{_has_other_sign(rest, y)} ? {rest} + {y} : {rest}", CONDITIONAL)


def _floor_divide(_equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
    x, y = (o.at(ATOM) for o in operands)
    rest = part(f"fmod({operands[0].text}, {operands[1].text})")
    return Fragment(f"{y} == 0.0 ? {x}/{y} : rint(({x} - {rest})/{y}) - ({_has_other_sign(rest, y)})", CONDITIONAL)


def _has_other_sign(rest: str, divisor: str) -> str:
    return f"{rest} != 0.0 && ({rest} < 0.0) != ({divisor} < 0.0)"


def _sinc_or_wave(name: str, x: str) -> str:
    if name != "sinc":
        return f"{name}({x})"
    x, pi = x if x.isidentifier() else f"({x})", repr(math.pi)
    return f"({x} == 0.0 ? 1.0 : sin({pi}*{x})/({pi}*{x}))"


def _document(formulas: Formulas) -> Document:
    return functions(stable(formulas, LANGUAGE), c, _NAMING)


_NAMING = Naming(_spellings, elements=_elements)

LANGUAGE = Language(
    name="c",
    comment="//",
    functions={
        **operators("// % @ **"),
        **SCALAR_FUNCTIONS,
        "sigmoid": template("1.0/(1.0 + exp(-{0}))", TIMES),
        "logsigmoid": template("fmin({0}, 0.0) - log1p(exp(-fabs({0})))", SUM),
        "softplus": template("fmax({0}, 0.0) + log1p(exp(-fabs({0})))", SUM),
        # The equal case comes first: the difference of two equal infinities is nan.
        "logaddexp": template(
            "{0} == {1} ? {0} + 0.6931471805599453 : fmax({0}, {1}) + log1p(exp(-fabs({0} - {1})))", CONDITIONAL
        ),
        "logcosh": template(
            "fabs({0}) < 1.0 ? log1p(2.0*pow(sinh({0}/2.0), 2.0)) "
            ": fabs({0}) + log1p(exp(-2.0*fabs({0}))) - 0.6931471805599453",
            CONDITIONAL,
        ),
        "logaddexp2": template(
            "{0} == {1} ? {0} + 1.0 : fmax({0}, {1}) + log1p(exp2(-fabs({0} - {1})))/0.6931471805599453", CONDITIONAL
        ),
        "sech": template("1.0/cosh({0})", TIMES),
        "csch": template("1.0/sinh({0})", TIMES),
        "coth": template("1.0/tanh({0})", TIMES),
        "softsign": template("{0}/(1.0 + fabs({0}))", TIMES),
        "tanhshrink": template(f"fabs({{0}}) < 0.01 ? {TANHSHRINK} : {{0}} - tanh({{0}})", CONDITIONAL),
        "relu": template("{0} < 0.0 ? 0.0 : {0}", CONDITIONAL, inner=SUM),
        "sign": template("{0} != {0} ? {0} : ({0} > 0.0) - ({0} < 0.0)", CONDITIONAL, inner=SUM),
        # Not fmax and fmin, which ignore nan.
        "maximum": template("{0} > {1} || {0} != {0} ? {0} : {1}", CONDITIONAL, inner=SUM),
        "minimum": template("{0} < {1} || {0} != {0} ? {0} : {1}", CONDITIONAL, inner=SUM),
        "where": lambda _equation, operands: Fragment(
            f"{operands[0].at(COMPARE)} ? {operands[1].at(COMPARE)} : {operands[2].at(CONDITIONAL)}", CONDITIONAL
        ),
        "xlogy": template("{0} == 0.0 && {1} == {1} ? 0.0 : {0}*log({1})", CONDITIONAL),
        "xlog1py": template("{0} == 0.0 && {1} == {1} ? 0.0 : {0}*log1p({1})", CONDITIONAL),
        "rsqrt": lambda _equation, operands: Fragment(f"1.0/sqrt({operands[0].text})", TIMES),
        "negative": negated,
        "whole_power": _whole_power,
        "logical_and": template("({0} && {1})"),
        "logical_or": template("({0} || {1})"),
        "logical_not": template("!{0}", UNARY),
        "sech_square": template("pow(cosh({0}), -2.0)"),
    },
    others=calls("c", lambda primitive: primitive.spelling.get("c", "")),
    number=_number,
    array=_array,
    document=_document,
    with_parts={
        "clip": _clip,
        "remainder": _remainder,
        "floor_divide": _floor_divide,
        "sinc": sinc(_sinc_or_wave, _number),
        "sinpi": by_part(
            "remainder({0}, 2.0)", "sin(3.141592653589793*(fabs({0}) > 0.5 ? copysign(1.0, {0}) - {0} : {0}))"
        ),
        "cospi": by_part("remainder({0}, 2.0)", "sin(3.141592653589793*(0.5 - fabs({0})))"),
    },
    truths=BooleanConversion(
        lambda truth: Fragment(f"1.0*{truth.at(UNARY)}", TIMES),
        lambda number: Fragment(f"{number.at(SUM)} != 0.0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)
