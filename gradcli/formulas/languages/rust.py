"""Code generation: programs as functions of Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from gradcli.arrays.shapes import Shape
from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    called_in_c,
    definitions_called,
    float_number,
    no_array,
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
    TIMES,
    BooleanConversion,
    Fragment,
    Language,
    calls,
    operators,
    template,
)
from gradcli.program.ir import Program

_METHODS = {
    "fabs": "abs", "fmin": "min", "fmax": "max", "isnan": "is_nan", "isfinite": "is_finite", "isinf": "is_infinite",
    "nearbyint": "round_ties_even", "rint": "round_ties_even", "expm1": "exp_m1", "log": "ln", "log1p": "ln_1p",
    "pow": "powf",
    **{name: name for name in
       ["floor", "ceil", "trunc", "copysign", "exp", "exp2", "log2", "log10", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "hypot", "sinh", "cosh", "tanh", "asinh", "atanh"]},
}  # fmt: skip
# Paths, not methods: a method of a literal needs its type, and binds tighter than a sign.
_CALLED = {
    **{name: f"f64::{method}" for name, method in _METHODS.items()},
    "fmod": "fmod", "erf": "erf", "erfc": "erfc", "tgamma": "gamma", "lgamma": "log_abs_gamma",
}  # fmt: skip

# The functions that f64 lacks.
_DEFINITIONS = {
    "fmod": """\
fn fmod(x: f64, y: f64) -> f64 {
    x % y
}""",
    "erf": """\
fn erf(x: f64) -> f64 {
    if x.abs() > 1.0 {
        return if x > 0.0 { 1.0 - erfc(x) } else { erfc(-x) - 1.0 };
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}""",
    "erfc": """\
fn erfc(x: f64) -> f64 {
    if x.is_nan() || x <= 1.0 {
        return 1.0 - erf(x);
    }
    // A continued fraction.
    let below = (1..=100).rev().fold(x, |below, k| x + k as f64 / 2.0 / below);
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * below)
}""",
    "gamma": """\
fn gamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x <= 0.0 && x == x.floor() {
        return if x == 0.0 { 1.0 / x } else { f64::NAN };
    }
    if x == x.floor() && x < 171.0 {
        return (2..x as i32).fold(1.0, |product, k| product * k as f64);
    }
    if x < 0.5 {
        let whole = x.round();
        let sign = if whole % 2.0 == 0.0 { 1.0 } else { -1.0 };
        return PI / (sign * (PI * (x - whole)).sin() * gamma(1.0 - x));
    }
    let half = (x + 6.5).powf((x - 0.5) / 2.0);
    (2.0 * PI).sqrt() * half * (-x - 6.5).exp() * half * lanczos(x)
}""",
    "log_abs_gamma": """\
fn log_abs_gamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x.is_infinite() {
        return f64::INFINITY;
    }
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    if x < 0.5 {
        return (PI / (PI * (x - x.round())).sin().abs()).ln() - log_abs_gamma(1.0 - x);
    }
    (x - 0.5) * (x + 6.5).ln() - x - 6.5 + ((2.0 * PI).sqrt() * lanczos(x)).ln()
}""",
    "lanczos": """\
// The approximation by Lanczos with g = 7, of a relative error of about 1e-15.
fn lanczos(x: f64) -> f64 {
    let terms = [676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406,
        12.507343278686905, -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7];
    terms.iter().enumerate().fold(0.9999999999998099, |sum, (i, term)| sum + term / (x + i as f64))
}""",
}  # fmt: skip

_RESERVED = frozenset(
    """_ Self abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen
    if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try
    type typeof union unsafe unsized use virtual where while yield f64 std""".split()  # noqa: SIM905
).union(_DEFINITIONS)


def rust(program: Program, names: Names, *, name: str, doc: str, short: int) -> Code:
    """A program of scalars as a function of f64; with several outputs it returns an array. Raises
    DifferentiationError for tensor inputs."""
    written = write_numbers(program, LANGUAGE, names, "Rust", short=short)
    parameters = [_parameter(parameter, shape) for parameter, shape in names.parameters.items()]
    results = ", ".join(written.results)
    count = len(written.results)
    parts = [f"let {n} = {part};" for n, part in written.parts]
    read = {*re.findall(r"\w+", " ".join([*parts, results]))}
    body = [*(f"let _ = {parameter};" for parameter in names.parameters if parameter not in read), *parts]
    lines = [
        f"/// {doc}",
        *_attributes(body, results, names),
        f"pub fn {name}({', '.join(parameters)}) -> {'f64' if count == 1 else f'[f64; {count}]'} {{",
        *(f"    {line}" for line in body),
        f"    {results}" if count == 1 else f"    [{results}]",
        "}",
    ]
    code = "\n".join(lines)
    return Code(definitions_called(code, _DEFINITIONS), code)


def _attributes(body: Sequence[str], results: str, names: Names) -> Iterator[str]:
    """Attributes for what the compiler would warn of: parentheses around a whole condition or branch, and names like
    `X`."""
    allowed = []
    if any("if " in line for line in (*body, results)):
        allowed.append("unused_parens")
    if any(name != name.lower() or "__" in name for name in names.parameters):
        allowed.append("non_snake_case")
    if allowed:
        yield f"#[allow({', '.join(allowed)})]"


def _parameter(name: str, shape: Shape) -> str:
    kind = "f64"
    for size in reversed(shape[1:]):
        kind = f"[{kind}; {size}]"
    return f"{name}: &[{kind}]" if shape else f"{name}: f64"


def _choose(condition: str, then: str, otherwise: str) -> str:
    return f"if {condition} {{{{ {then} }}}} else {{{{ {otherwise} }}}}"


def _document(formulas: Formulas) -> Document:
    return functions(stable(formulas, LANGUAGE), rust, _NAMING)


_NAMING = Naming(lambda name: with_underscores(name, _RESERVED.__contains__), elements=elements_of_rows)
_number = float_number("f64::INFINITY", "f64::NAN")
_SYNTAX = ScalarSyntax(partial(with_functions, names=_CALLED), _choose, CONDITIONAL)

LANGUAGE = Language(
    name="rust",
    comment="//",
    functions={
        **operators("// % @ **"),
        **scalar_functions(_SYNTAX),
        "sign": template(_choose("{0} == 0.0", "{0}", "f64::signum({0})"), CONDITIONAL, inner=SUM),
        # f64::acosh loses digits near 1.
        "acosh": template("2.0*f64::asinh(f64::sqrt(({0} - 1.0)/2.0))", TIMES),
        # Not powi, whose error grows with the exponent.
        "whole_power": square_or_call("f64::powf", _number),
    },
    others=calls("rust", partial(called_in_c, _CALLED)),
    number=_number,
    array=no_array("Rust"),
    document=_document,
    with_parts=scalar_parts(_SYNTAX),
    truths=BooleanConversion(
        lambda truth: Fragment(f"if {truth.text} {{ 1.0 }} else {{ 0.0 }}", CONDITIONAL),
        lambda number: Fragment(f"{number.at(SUM)} != 0.0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)
