"""Code generation: programs as functions of MATLAB and GNU Octave, which take numbers or arrays of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    definitions_called,
    no_array,
    plain_number,
    real_calls,
    scalar_functions,
    scalar_parts,
    with_functions,
    write_numbers,
)
from gradcli.formulas.writing.documents import Code, Document, Formulas, functions
from gradcli.formulas.writing.naming import Names, Naming, in_ascii
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    POWER,
    SUM,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    Spelling,
    UnsupportedPrimitiveError,
    infix,
    operators,
    template,
)
from gradcli.program.ir import Equation, Key, Program

# Functions of real numbers that have complex values.
_COMPLEX = ("sqrt", "log", "log2", "log10", "log1p", "asin", "acos", "acosh", "atanh")
_CALLED = {
    "fabs": "abs", "fmin": "min", "fmax": "max", "trunc": "fix", "nearbyint": "round_half_even", "rint": "round_half_even",
    "fmod": "exact_rem", "pow": "real_power", "exp2": "pow2", "cbrt": "cube_root", "tgamma": "gamma",
    "lgamma": "log_abs_gamma",
    **{name: f"real_{name}" for name in _COMPLEX},
    **{name: name for name in
       ["isnan", "isfinite", "isinf", "floor", "ceil", "copysign", "exp", "expm1", "sin", "cos", "tan", "atan", "atan2", "hypot", "sinh", "cosh", "tanh", "asinh", "erf", "erfc"]},
}  # fmt: skip

# Functions that MATLAB lacks, or that give complex or less exact results there, or take no arrays.
_DEFINITIONS = {
    "choose": """\
function y = choose(condition, a, b)
    s = ones(size(condition + a + b));
    y = b .* s;
    a = a .* s;
    condition = condition & s;
    y(condition) = a(condition);
end""",
    "real_power": """\
function y = real_power(x, n)
    y = abs(x).^n;
    s = ones(size(y));
    x = x .* s;
    n = n .* s;
    negative = x < 0 | (x == 0 & 1./x < 0);
    odd = negative & mod(n, 2) == 1;
    y(odd) = -y(odd);
    y(negative & isfinite(x) & x ~= 0 & isfinite(n) & n ~= fix(n)) = NaN;
    y(isnan(n)) = NaN;
    y(x == 1 | n == 0) = 1;
end""",
    **{
        f"real_{name}": f"""\
function y = real_{name}(x)
    y = {name}(x);
    y(imag(y) ~= 0) = NaN;
    y = real(y);
end"""
        for name in _COMPLEX
    },
    "round_half_even": """\
function y = round_half_even(x)
    y = round(x);
    tie = abs(x - fix(x)) == 0.5;
    y(tie) = 2*round(x(tie)/2);
end""",
    "exact_rem": """\
function r = exact_rem(x, y)
    % The remainder with the sign of x; rem rounds the quotient.
    s = ones(size(x + y));
    x = x .* s;
    y = abs(y .* s);
    r = abs(x);
    r(~isfinite(x) | isnan(y) | y == 0) = NaN;
    left = r >= y;
    while any(left(:))
        [~, e1] = log2(r);
        [~, e2] = log2(y);
        d = max(e1 - e2 - 1, 0);
        step = y .* 2.^min(d, 1000) .* 2.^min(max(d - 1000, 0), 1000) .* 2.^max(d - 2000, 0);
        step(step <= r/2) = 2*step(step <= r/2);
        r(left) = r(left) - step(left);
        left = r >= y;
    end
    r = copysign(r, x);
end""",
    "copysign": """\
function y = copysign(x, s)
    y = abs(x) .* ones(size(s));
    negative = (s < 0 | (s == 0 & 1./s < 0)) & ones(size(x));
    y(negative) = -y(negative);
end""",
    "cube_root": """\
function y = cube_root(x)
    y = nthroot(x, 3);
    y(~isfinite(x)) = x(~isfinite(x));
end""",
    "log_abs_gamma": """\
function y = log_abs_gamma(x)
    y = gammaln(abs(x));
    negative = x < 0;
    z = x(negative);
    y(negative) = log(pi./(abs(z) .* abs(sin(pi*(z - round(z)))))) - y(negative);
end""",
}  # fmt: skip

# Keywords of MATLAB and of Octave.
_RESERVED = frozenset(
    """break case catch classdef continue else elseif end for function global if otherwise parfor persistent return spmd
    switch try while arguments enumeration events methods properties
    do until unwind_protect unwind_protect_cleanup end_try_catch end_unwind_protect endfunction endif endfor endwhile
    endswitch endclassdef endenumeration endevents endmethods endparfor endproperties endspmd endarguments __FILE__
    __LINE__ pi Inf NaN true false sign""".split()  # noqa: SIM905
).union(_DEFINITIONS, _CALLED.values())
# MATLAB ignores further characters of a name.
_LONGEST_NAME = 63


def matlab(program: Program, names: Names, *, name: str, doc: str, short: int) -> Code:
    """A program of scalars as a function of numbers or arrays, element by element; it returns its outputs one by one.
    Raises DifferentiationError for tensor inputs."""
    written = write_numbers(program, LANGUAGE, names, "MATLAB", short=short)
    count = len(written.results)
    results = [names.new("y" if count == 1 else f"y{i}") for i in range(count)]
    of = results[0] if count == 1 else f"[{', '.join(results)}]"
    lines = [
        f"function {of} = {name}({', '.join(names.parameters)})",
        f"    % {doc}",
        *(f"    {n} = {part};" for n, part in written.parts),
        *(f"    {result} = {text};" for result, text in zip(results, written.results)),
        "end",
    ]
    code = "\n".join(lines)
    # Definitions follow: a file is called by the name of its first function.
    return Code([], code, definitions_called(code, _DEFINITIONS))


def _operator(symbol: str, level: int) -> Spelling:
    """An operator of elements; with a number * and / are that too."""
    by_elements, of_numbers = infix(f".{symbol}", level), infix(symbol, level)
    if symbol not in "*/":
        return of_numbers

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        first, second = operands
        number = second.plain or (symbol == "*" and first.plain)
        return (of_numbers if number else by_elements)(equation, operands)

    return spelling


def _whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"{operands[0].at(ATOM)}.^{_number(equation.params['n']).at(UNARY)}", POWER)


def _sinc(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    if equation.params["n"]:
        raise UnsupportedPrimitiveError(equation, "matlab")
    x = operands[0].at(ATOM)
    return Fragment(f"choose({x} == 0, 1, sin(pi*{x})./(pi*{x}))")


def _expression(text: str) -> str:
    text = re.sub(r"(\d)\.0\b", r"\1", with_functions(text, _CALLED))
    for symbol, theirs in {"*": ".*", "/": "./", "!=": "~=", "||": "|", "&&": "&"}.items():
        text = text.replace(symbol, theirs)
    # A product with a number needs no operator of elements.
    return re.sub(r"(?<![\w.})])(\d[\d.]*)\.([*])", r"\1\2", text)


def _spellings(name: str) -> Iterator[str]:
    spelled = in_ascii(name)
    spelled = f"v{spelled}" if spelled.startswith("_") else spelled
    n = 0
    while True:
        if (found := spelled[: _LONGEST_NAME - n] + n * "_") not in _RESERVED:
            yield found
        n += 1


def _elements(name: str, key: Key) -> Iterator[str]:
    """Indices begin with 1."""
    yield f"{name}({', '.join(str(i + 1) for i in key)})"


def _document(formulas: Formulas) -> Document:
    return functions(stable(formulas, LANGUAGE), matlab, _NAMING)


_NAMING = Naming(_spellings, elements=_elements)
_number = plain_number({"pi": "pi", "e": repr(math.e), "inf": "Inf", "nan": "NaN"})
_SYNTAX = ScalarSyntax(_expression, "choose({}, {}, {})".format, ATOM)

LANGUAGE = Language(
    name="matlab",
    comment="%",
    functions={
        **operators("// % @ **", not_equal="~=", form=_operator),
        **scalar_functions(_SYNTAX),
        "sign": template("sign({0})", inner=CONDITIONAL),
        "whole_power": _whole_power,
        "logical_and": template("({0} & {1})"),
        "logical_or": template("({0} | {1})"),
        "logical_not": template("~{0}", UNARY),
    },
    others=real_calls("matlab", _CALLED, infix(".^", POWER)),
    number=_number,
    array=no_array("MATLAB"),
    document=_document,
    with_parts={
        **scalar_parts(_SYNTAX),
        "sinc": lambda equation, operands, _part: _sinc(equation, operands),
    },
    truths=BooleanConversion(
        lambda truth: Fragment(f"1*{truth.at(UNARY)}", TIMES),
        lambda number: Fragment(f"{number.at(SUM)} ~= 0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)
