"""Code generation: programs as functions of JavaScript."""

from __future__ import annotations

import re
from functools import partial

from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    called_in_c,
    definitions_called,
    no_array,
    plain_number,
    scalar_functions,
    scalar_parts,
    square_or_call,
    with_functions,
    write_numbers,
)
from gradcli.formulas.writing.documents import Code, Document, Formulas, functions
from gradcli.formulas.writing.naming import Names, Naming, elements_of_rows, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    COMPARE,
    CONDITIONAL,
    SUM,
    BooleanConversion,
    Fragment,
    Language,
    calls,
    function,
    operators,
    template,
)
from gradcli.program.ir import Program

# The functions of JavaScript by their names in C.
_CALLED = {
    "fabs": "Math.abs", "fmin": "Math.min", "fmax": "Math.max", "isnan": "Number.isNaN", "isfinite": "Number.isFinite",
    "nearbyint": "roundHalfEven", "rint": "roundHalfEven", "exp2": "exp2", "pow": "power", "fmod": "fmod",
    "isinf": "isInfinite", "copysign": "copysign", "erf": "erf", "erfc": "erfc", "tgamma": "gamma", "lgamma": "logAbsGamma",
    **{name: f"Math.{name}" for name in
       ["floor", "ceil", "trunc", "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "hypot", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]},
}  # fmt: skip

# The functions that Math lacks, or that differ from those of C.
_DEFINITIONS = {
    "exp2": "const exp2 = (x) => Math.pow(2, x);",
    "fmod": "const fmod = (x, y) => x % y;",
    "isInfinite": "const isInfinite = (x) => Math.abs(x) === Infinity;",
    "copysign": "const copysign = (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x));",
    "power": """\
// Math.pow of 1 and NaN, or of -1 and Infinity, is NaN.
const power = (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y));""",
    "roundHalfEven": """\
function roundHalfEven(x) {
    const rounded = Math.round(x);
    return Math.abs(x % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}""",
    "erf": """\
function erf(x) {
    if (Math.abs(x) > 1) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17*Math.abs(sum); n++) {
        term *= 2*x*x/(2*n + 1);
        sum += term;
    }
    return 2/Math.sqrt(Math.PI)*Math.exp(-x*x)*sum;
}""",
    "erfc": """\
function erfc(x) {
    if (!(x > 1)) return 1 - erf(x);
    // A continued fraction.
    let below = x;
    for (let k = 100; k > 0; k--) below = x + k/2/below;
    return Math.exp(-x*x)/(Math.sqrt(Math.PI)*below);
}""",
    "gamma": """\
function gamma(x) {
    if (x <= 0 && x === Math.floor(x)) return x === 0 ? 1/x : NaN;
    if (x === Math.floor(x) && x < 171) {
        let product = 1;
        for (let k = 2; k < x; k++) product *= k;
        return product;
    }
    if (x < 0.5) {
        const whole = Math.round(x);
        return Math.PI/((whole % 2 ? -1 : 1)*Math.sin(Math.PI*(x - whole))*gamma(1 - x));
    }
    const half = Math.pow(x + 6.5, (x - 0.5)/2);
    return Math.sqrt(2*Math.PI)*half*Math.exp(-x - 6.5)*half*lanczos(x);
}""",
    "logAbsGamma": """\
function logAbsGamma(x) {
    if (Math.abs(x) === Infinity) return Infinity;
    if (x === 1 || x === 2) return 0;
    if (x < 0.5) return Math.log(Math.PI/Math.abs(Math.sin(Math.PI*(x - Math.round(x))))) - logAbsGamma(1 - x);
    return (x - 0.5)*Math.log(x + 6.5) - x - 6.5 + Math.log(Math.sqrt(2*Math.PI)*lanczos(x));
}""",
    "lanczos": """\
// The approximation by Lanczos with g = 7, of a relative error of about 1e-15.
function lanczos(x) {
    const terms = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
        12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
    return terms.reduce((sum, term, i) => sum + term/(x + i), 0.99999999999980993);
}""",
}  # fmt: skip

_RESERVED = frozenset(
    """abstract arguments async await boolean break byte case catch char class const continue debugger default delete do
    double else enum eval export extends false final finally float for function get goto if implements import in
    instanceof int interface let long native new null of package private protected public return set short static
    super switch synchronized this throw throws transient true try typeof undefined var void volatile while with
    yield Math Number Object Infinity NaN""".split()  # noqa: SIM905
).union(_DEFINITIONS)


def javascript(program: Program, names: Names, *, name: str, doc: str, short: int) -> Code:
    """A program of scalars as a function of numbers; with several outputs it returns an array. Raises
    DifferentiationError for tensor inputs."""
    written = write_numbers(program, LANGUAGE, names, "JavaScript", short=short)
    results = ", ".join(written.results)
    body = [f"const {n} = {part};" for n, part in written.parts]
    body.append(f"return {results};" if len(written.results) == 1 else f"return [{results}];")
    lines = [
        f"/** {doc.replace('*/', '* /')} */",
        f"function {name}({', '.join(names.parameters)}) {{",
        *(f"    {line}" for line in body),
        "}",
    ]
    code = "\n".join(lines)
    return Code(definitions_called(code, _DEFINITIONS), code)


def _document(formulas: Formulas) -> Document:
    return functions(stable(formulas, LANGUAGE), javascript, _NAMING)


def _expression(text: str) -> str:
    text = re.sub(r"(\d)\.0\b", r"\1", with_functions(text, _CALLED))
    return re.sub("([=!]=)", r"\1=", text)


_NAMING = Naming(lambda name: with_underscores(name, _RESERVED.__contains__), elements=elements_of_rows)
_number = plain_number({"pi": "Math.PI", "e": "Math.E", "inf": "Infinity", "nan": "NaN"})
_SYNTAX = ScalarSyntax(_expression, "{} ? {} : {}".format, CONDITIONAL)

LANGUAGE = Language(
    name="javascript",
    comment="//",
    functions={
        **operators("// % @ **", equal="===", not_equal="!=="),
        **scalar_functions(_SYNTAX),
        "sign": template("Math.sign({0})", inner=CONDITIONAL),
        # Not the operator **, which cannot follow an operand with a sign.
        "whole_power": square_or_call("Math.pow", _number),
    },
    others=calls("javascript", partial(called_in_c, _CALLED)),
    number=_number,
    array=no_array("JavaScript"),
    document=_document,
    with_parts=scalar_parts(_SYNTAX),
    truths=BooleanConversion(
        lambda truth: function("Number", truth.text),
        lambda number: Fragment(f"{number.at(SUM)} !== 0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)
