"""Code generation: programs as functions of Julia."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    definitions_called,
    float_number,
    no_array,
    real_calls,
    scalar_functions,
    scalar_parts,
    with_functions,
    write_numbers,
)
from gradcli.formulas.writing.documents import Code, Document, Formulas, functions
from gradcli.formulas.writing.naming import Names, Naming, in_ascii, with_underscores
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
    infix,
    operators,
    template,
)
from gradcli.program.ir import Equation, Key, Program

# Where functions are not real: Julia raises a DomainError there, even in a part that the taken branch does not use.
_OUTSIDE_DOMAIN = {
    **dict.fromkeys(("sqrt", "log", "log2", "log10"), "x < 0"), "log1p": "x < -1", "asin": "abs(x) > 1",
    "acos": "abs(x) > 1", "acosh": "x < 1", "atanh": "abs(x) > 1",
}  # fmt: skip
_CALLED = {
    "fabs": "abs", "fmin": "min", "fmax": "max", "nearbyint": "round", "rint": "round", "fmod": "rem", "atan2": "atan",
    "pow": "real_power", "tgamma": "gamma", "lgamma": "log_abs_gamma",
    **{name: f"real_{name}" for name in _OUTSIDE_DOMAIN},
    **{name: name for name in
       ["isnan", "isfinite", "isinf", "floor", "ceil", "trunc", "copysign", "exp", "exp2", "expm1", "cbrt", "sin", "cos", "tan", "atan", "hypot", "sinh", "cosh", "tanh", "asinh", "erf", "erfc"]},
}  # fmt: skip


_DEFINITIONS = {
    "erf": "using SpecialFunctions: erf",
    "erfc": "using SpecialFunctions: erfc",
    "gamma": "using SpecialFunctions: gamma",
    "log_abs_gamma": "using SpecialFunctions: logabsgamma\nlog_abs_gamma(x) = first(logabsgamma(x))",
    **{
        f"real_{name}": f"real_{name}(x) = {outside} ? oftype(x, NaN) : {name}(x)"
        for name, outside in _OUTSIDE_DOMAIN.items()
    },
    "real_power": """\
function real_power(x, y)
    x < 0 && isfinite(y) && !isinteger(y) || return x^y
    return isinf(x) ? abs(x)^y : oftype(x, NaN)
end""",
}

_RESERVED = frozenset(
    """abstract baremodule begin break catch const continue do else elseif end export false finally for function global if
    import in isa let local macro module mutable outer primitive public quote return struct true try type using where
    while NaN Inf sign first abs min max round rem oftype float""".split()  # noqa: SIM905
).union(_DEFINITIONS, _CALLED.values())


def julia(program: Program, names: Names, *, name: str, doc: str, short: int) -> Code:
    """A program of scalars as a function of numbers; with several outputs it returns a tuple. Raises
    DifferentiationError for tensor inputs."""
    written = write_numbers(program, LANGUAGE, names, "Julia", short=short)
    read = names.read_by(program)
    # Powers of integers overflow, and have no negative exponents.
    body = [f"{', '.join(read)} = {', '.join(f'float({n})' for n in read)}"] if read else []
    body += [f"{n} = {part}" for n, part in written.parts]
    lines = [
        f"# {doc}",
        f"function {name}({', '.join(names.parameters)})",
        *(f"    {line}" for line in [*body, f"return {', '.join(written.results)}"]),
        "end",
    ]
    code = "\n".join(lines)
    return Code(definitions_called(code, _DEFINITIONS), code)


def _whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    n = equation.params["n"]
    # A power of an integer is that by squaring; large exponents are beyond the integers.
    exponent = Fragment(str(int(n)), UNARY if n < 0 else ATOM) if abs(n) < 1000 else _number(n)
    return Fragment(f"{operands[0].at(ATOM)}^{exponent.at(UNARY)}", POWER)


def _spellings(name: str) -> Iterator[str]:
    """A name of letters and digits as it is, and others in ASCII: Julia reads `·` as an operator."""
    plain = all(character.isalpha() or re.match("[0-9_]", character) for character in name)
    # A name of underscores alone cannot be read.
    spelled = name if plain and name.strip("_") else f"v{in_ascii(name)}"
    return with_underscores(spelled, _RESERVED.__contains__)


def _elements(name: str, key: Key) -> Iterator[str]:
    """Indices begin with 1."""
    yield f"{name}[{', '.join(str(i + 1) for i in key)}]"


def _document(formulas: Formulas) -> Document:
    return functions(stable(formulas, LANGUAGE), julia, _NAMING)


_NAMING = Naming(_spellings, elements=_elements)
_number = float_number("Inf", "NaN")
_SYNTAX = ScalarSyntax(partial(with_functions, names=_CALLED), "{} ? {} : {}".format, CONDITIONAL)

LANGUAGE = Language(
    name="julia",
    functions={
        **operators("// % @ **"),
        **scalar_functions(_SYNTAX),
        "sign": template("sign({0})", inner=CONDITIONAL),
        "whole_power": _whole_power,
    },
    others=real_calls("julia", _CALLED, infix("^", POWER)),
    number=_number,
    array=no_array("Julia"),
    document=_document,
    with_parts=scalar_parts(_SYNTAX),
    truths=BooleanConversion(
        lambda truth: Fragment(f"1.0*{truth.at(UNARY)}", TIMES),
        lambda number: Fragment(f"{number.at(SUM)} != 0.0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)
