"""Tests the code that `gradcli diff` prints in Julia, JavaScript, Rust and MATLAB, and its formulas of a spreadsheet:
as text, and against `eval` where a program that runs it is installed."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.formulas import languages
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.formulas.writing.documents import Formulas
from gradcli.formulas.writing.text_writer import UnsupportedPrimitiveError
from gradcli.language.syntax import parse
from tests.formulas import test_diff_by_element, test_printed_code
from tests.formulas import test_names as test_names_of
from tests.formulas.test_diff import (
    AT_EDGES,
    POINTS,
    SCALARS,
    TRUTHS,
    at_edges,
    derivative,
    inputs_of,
    names_of,
    truths,
    value,
)
from tests.formulas.test_spellings import LIMIT, samples_of_numbers
from tests.primitives.test_primitives import PRIMITIVES
from tests.printed_programs import RUNNERS, Call, in_spreadsheet, needs

NEEDS_SOFFICE = needs("soffice")
# Programs of SCALARS with a function that none of these languages has.
LACKING = {"gamma(x)", "lgamma(x)", "j0(x)"}


def outcome(run: Any, language: str, program: str, *words: str) -> Any:
    return run("diff", program, *words, "--to", language, "--json")


@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_value_and_derivatives(run, tmp_path, language, runner):
    texts, calls, expected = [], [], []
    for program, wrt, order in SCALARS:
        found = outcome(run, language, program, "--wrt", wrt, "--order", str(order))
        if program in LACKING:
            assert found.status == 1
            continue
        inputs = inputs_of(program, POINTS[0 if "acosh" not in program else 2])
        calls.append(Call(len(texts), "value_and_derivatives", [*inputs.values()], 2))
        texts.append(found.json["together"])
        expected.append([value(program, inputs), derivative(program, wrt, order, inputs) or 0.0])
    for found, wanted, call in zip(runner(texts, calls, tmp_path), expected, calls, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12), texts[call.text]


@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_at_edges(run, tmp_path, language, runner):
    texts, calls, expected = [], [], []
    for program in AT_EDGES:
        codes = outcome(run, language, program).json["derivatives"]
        for by, inputs, wanted in at_edges(program):
            if codes[by] not in texts:
                texts.append(codes[by])
            if language == "julia" and "atan" not in program and any(map(math.isinf, inputs.values())):
                continue
            calls.append(Call(texts.index(codes[by]), f"derivative_{by}", [*inputs.values()], 1))
            expected.append(wanted)
    for (found,), wanted, call in zip(runner(texts, calls, tmp_path), expected, calls, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-290, nan_ok=True), (texts[call.text], call)


@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_truth_values_are_numbers(run, tmp_path, language, runner):
    texts = [outcome(run, language, p, "--wrt", "q").json["derivatives"]["q"] for p in TRUTHS]
    cases = truths()
    calls = [Call(TRUTHS.index(program), "derivative_q", [*inputs.values()], 1) for program, inputs, _ in cases]
    for (found,), (program, inputs, wanted) in zip(runner(texts, calls, tmp_path), cases, strict=True):
        assert found == pytest.approx(wanted, rel=1e-14), (program, inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_operators_at_their_edges(run, tmp_path, language, runner):
    texts, calls, expected = [], [], []
    for program in test_printed_code.OPERATORS:
        names = names_of(program)
        texts.append(outcome(run, language, program).json["value"])
        compiled = gradcli.compile(program)
        edges = test_printed_code.EDGES if len(names) == 1 else test_printed_code.FEW_EDGES
        for numbers in itertools.product(edges, repeat=len(names)):
            calls.append(Call(len(texts) - 1, "value", numbers, 1))
            expected.append(float(compiled(**dict(zip(names, numbers)))))
    for (found,), wanted, call in zip(runner(texts, calls, tmp_path), expected, calls, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-300, nan_ok=True), (texts[call.text], call)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_derivatives_do_not_overflow_or_cancel(run, tmp_path, language, runner):
    texts, calls, expected = [], [], []
    for program in test_printed_code.SENSITIVE:
        names = names_of(program)
        texts.append(outcome(run, language, program).json["together"])
        huge = () if "var" in program else test_printed_code.HUGE
        points = [dict(zip(names, map(float, p))) for p in (*test_printed_code.SHIFTED, *huge, (2.0, 0.3, -1.7))]
        calls += [Call(len(texts) - 1, "value_and_derivatives", [*p.values()], 1 + len(names)) for p in points]
        expected += test_printed_code.computed(program, points)
    for found, wanted, call in zip(runner(texts, calls, tmp_path), expected, calls, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-300, nan_ok=True), (texts[call.text], call)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_programs_of_elements_loops_and_branches(run, tmp_path, language, runner):
    texts, calls, expected = [], [], []
    for program, values, given in test_diff_by_element.PROGRAMS:
        words = test_diff_by_element.words_of(program, values, given)[1:]
        gradient = test_diff_by_element.gradient(program, values)
        for by, code in outcome(run, language, program, *words).json["derivatives"].items():
            signature = re.search(r"(derivative_\w+)\((.*?)\)(?: ->| {|$)", code, re.MULTILINE)
            names = [name.split(":")[0] for name in signature[2].split(", ")]
            calls.append(Call(len(texts), signature[1], [values[name] for name in names], 1))
            texts.append(code)
            expected.append(gradient[by])
    for (found,), wanted, call in zip(runner(texts, calls, tmp_path), expected, calls, strict=True):
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-13), texts[call.text]


def function_of(made: Any, language: str) -> str:
    """A program of one primitive as a function of the language."""
    formulas = Formulas("f", made.program._replace(guards=()), {})
    return languages.document(language, formulas).members["value"]


@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_every_function_of_the_table(tmp_path, language, runner):
    texts, calls, wanted = {}, [], []
    known = [p for p in PRIMITIVES if languages.find(language).writes(p)]
    assert len(known) > 60
    for made in itertools.chain.from_iterable(map(samples_of_numbers, known)):
        try:
            code = function_of(made, language)
        except UnsupportedPrimitiveError:
            assert language == "matlab"
            assert made.name == "sinc"
            continue
        calls.append(Call(texts.setdefault(code, len(texts)), "value", [*made.inputs.values()], 1))
        wanted.append(made)
    for (found,), made in zip(runner([*texts], calls, tmp_path), wanted, strict=True):
        np.testing.assert_allclose(found, float(made.value), rtol=1e-13, atol=1e-14, err_msg=str(made))


# --- spreadsheets


@NEEDS_SOFFICE
def test_formulas_of_a_spreadsheet(run, tmp_path):
    rows, expected = [], []
    for program, wrt, order in SCALARS:
        found = run("diff", program, "--wrt", wrt, "--order", str(order), "--to", "excel")
        if program in {*LACKING, "where(isnan(log(x)), -x, log(x))", "nansum(sqrt(x)*y)", "nanmean(x)", "x % y"}:
            assert found.status == 1, program
            continue
        assert found.status == 0, (program, found.err)
        inputs = inputs_of(program, POINTS[0 if "acosh" not in program else 2])
        rows.append((found.out, inputs))
        expected.append([value(program, inputs), derivative(program, wrt, order, inputs) or 0.0])
    # The length of a small vector is not 0.
    rows.append((run("diff", "1e200*hypot(x, y)", "--to", "excel").out, {"x": 3e-200, "y": -4e-200}))
    expected.append([5, 0.6e200, -0.8e200])
    for found, wanted, row in zip(in_spreadsheet(rows, tmp_path), expected, rows, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12), row


@pytest.mark.slow
@NEEDS_SOFFICE
def test_truth_values_are_numbers_in_a_spreadsheet(run, tmp_path):
    texts = {p: run("diff", p, "--wrt", "q", "--to", "excel").out for p in TRUTHS}
    # A quotient of two numbers may be rounded up to a whole one.
    cases = [case for case in truths() if "//" not in case[0] and "%" not in case[0]]
    found = in_spreadsheet([(texts[program], inputs) for program, inputs, _ in cases], tmp_path)
    for (_, derivative_by_q), (program, inputs, wanted) in zip(found, cases, strict=True):
        assert derivative_by_q == pytest.approx(wanted, rel=1e-14), (program, inputs)


@pytest.mark.slow
@NEEDS_SOFFICE
def test_a_spreadsheet_never_gives_another_number_at_edges(run, tmp_path):
    """It may have an error where floats go on, as at an overflow."""
    edges = (0.0, -1.0, -8.0, 2.0, 0.5, 710.0, -40.0, 1e-9, 1e150, -1e-200)
    rows, expected = [], []
    for program in (*AT_EDGES, *test_printed_code.OPERATORS):
        found = run("diff", program, "--to", "excel")
        if found.status:
            assert "cannot be written as excel" in found.err, (program, found.err)
            continue
        names = names_of(program)
        compiled = gradcli.compile(program)
        for numbers in itertools.product(edges, repeat=len(names)):
            inputs = dict(zip(names, numbers))
            rows.append((found.out, inputs))
            # The value is written as it stands, not in the stable form that `eval` computes; a file has 19 decimals.
            tolerance = 1e-12 if program in AT_EDGES else 1e-18
            expected.append(pytest.approx(float(compiled(**inputs)), rel=1e-9, abs=tolerance))
    for (found, *_), wanted, row in zip(in_spreadsheet(rows, tmp_path), expected, rows, strict=True):
        if math.isfinite(found):
            assert found == wanted, row


@pytest.mark.slow
@NEEDS_SOFFICE
def test_every_function_of_the_table_in_a_spreadsheet(tmp_path):
    rows, wanted = [], []
    for made in itertools.chain.from_iterable(map(samples_of_numbers, PRIMITIVES)):
        if not languages.find("excel").writes(made.program.equations[-1].primitive):
            continue
        try:
            rows.append((languages.document("excel", Formulas("f", made.program, {})).text, made.inputs))
            wanted.append(made)
        except UnsupportedPrimitiveError:
            assert made.name in ("remainder", "floor_divide", "sinc")
    for (found,), made in zip(in_spreadsheet(rows, tmp_path), wanted, strict=True):
        np.testing.assert_allclose(found, float(made.value), rtol=1e-12, atol=1e-14, err_msg=str(made))
    assert abs(found) < LIMIT


# --- the text


PRINTED = {
    "julia": """\
real_log(x) = x < 0 ? oftype(x, NaN) : log(x)


# The value of log(x)*q if x > 1 else x**3/2.
function value(x, q)
    x, q = float(x), float(q)
    return x > 1.0 ? q*real_log(x) : x^3/2.0
end


# The derivative of log(x)*q if x > 1 else x**3/2 by x.
function derivative_x(x, q)
    x, q = float(x), float(q)
    return x > 1.0 ? q/x : 3.0*x^2/2.0
end


# The value of log(x)*q if x > 1 else x**3/2, and its derivatives by x.
function value_and_derivatives(x, q)
    x, q = float(x), float(q)
    v1 = x > 1.0
    return v1 ? q*real_log(x) : x^3/2.0, v1 ? q/x : 3.0*x^2/2.0
end
""",
    "javascript": """\
/** The value of log(x)*q if x > 1 else x**3/2. */
function value(x, q) {
    return x > 1 ? q*Math.log(x) : Math.pow(x, 3)/2;
}


/** The derivative of log(x)*q if x > 1 else x**3/2 by x. */
function derivative_x(x, q) {
    return x > 1 ? q/x : 3*(x*x)/2;
}


/** The value of log(x)*q if x > 1 else x**3/2, and its derivatives by x. */
function value_and_derivatives(x, q) {
    const v1 = x > 1;
    return [v1 ? q*Math.log(x) : Math.pow(x, 3)/2, v1 ? q/x : 3*(x*x)/2];
}
""",
    "rust": """\
/// The value of log(x)*q if x > 1 else x**3/2.
#[allow(unused_parens)]
pub fn value(x: f64, q: f64) -> f64 {
    if x > 1.0 { q*f64::ln(x) } else { f64::powf(x, 3.0)/2.0 }
}


/// The derivative of log(x)*q if x > 1 else x**3/2 by x.
#[allow(unused_parens)]
pub fn derivative_x(x: f64, q: f64) -> f64 {
    if x > 1.0 { q/x } else { 3.0*(x*x)/2.0 }
}


/// The value of log(x)*q if x > 1 else x**3/2, and its derivatives by x.
#[allow(unused_parens)]
pub fn value_and_derivatives(x: f64, q: f64) -> [f64; 2] {
    let v1 = x > 1.0;
    [if v1 { q*f64::ln(x) } else { f64::powf(x, 3.0)/2.0 }, if v1 { q/x } else { 3.0*(x*x)/2.0 }]
}
""",
    "matlab": """\
function y = value(x, q)
    % The value of log(x)*q if x > 1 else x**3/2.
    y = choose(x > 1, q.*real_log(x), x.^3/2);
end


function y = derivative_x(x, q)
    % The derivative of log(x)*q if x > 1 else x**3/2 by x.
    y = choose(x > 1, q./x, 3*x.^2/2);
end


function [y0, y1] = value_and_derivatives(x, q)
    % The value of log(x)*q if x > 1 else x**3/2, and its derivatives by x.
    v1 = x > 1;
    y0 = choose(v1, q.*real_log(x), x.^3/2);
    y1 = choose(v1, q./x, 3*x.^2/2);
end


function y = choose(condition, a, b)
    s = ones(size(condition + a + b));
    y = b .* s;
    a = a .* s;
    condition = condition & s;
    y(condition) = a(condition);
end


function y = real_log(x)
    y = log(x);
    y(imag(y) ~= 0) = NaN;
    y = real(y);
end
""",
    "excel": """\
value\t=IF(x>1,q*LN(x),x^3/2)
d_x\t=IF(x>1,q/x,3*x^2/2)
""",
}


@pytest.mark.parametrize("language", PRINTED)
def test_text(run, language):
    assert run("diff", "log(x)*q if x > 1 else x**3/2", "--wrt", "x", "--to", language).out == PRINTED[language]


@pytest.mark.parametrize(
    ("program", "cells"),
    [
        # A sign binds tighter than ^ there.
        ("-x**3", "value\t=-(x^3)\nd_x\t=-(3*x^2)\n"),
        ("2**-x", "value\t=POWER(2,-x)\nd_x\t=-LN(2)/POWER(2,x)\n"),
        # Not the real root of a negative number.
        ("x**1.5", "value\t=IF(x<0,SQRT(-1),POWER(x,1.5))\nd_x\t=1.5*SQRT(x)\n"),
        ("atan2(1, x)", "value\t=ATAN2(x,1)\nd_x\t=-(1/(x^2+1))\n"),
        # What would be a cell, a row or a column, or the same name in capitals.
        ("x1*C + X*x", "value\t=x1_*C_+X*x_\nd_x1\t=C_\nd_C\t=x1_\nd_X\t=x_\nd_x_\t=X\n"
                       "x1_\tstands for x1\nC_\tstands for C\nx_\tstands for x\n"),
    ],
)  # fmt: skip
def test_cells(run, program, cells):
    assert run("diff", program, "--to", "excel").out == cells


@pytest.mark.parametrize(
    ("program", "language", "message"),
    [
        ("lgamma(x)", "excel", "'lgamma' cannot be written as excel"),
        ("x % y", "excel", "'remainder' cannot be written as excel"),
        ("x*inf", "excel", "inf cannot be written as excel, which has no such number"),
        ("y = x; for i in range(12) { y = sin(y)*exp(y) }; y", "excel", "at most 8,192 characters"),
        ("digamma(x)", "rust", "'digamma' cannot be written as rust"),
        ("nextafter(x, y)", "julia", "'nextafter' cannot be written as julia"),
    ],
)
def test_what_cannot_be_written_is_refused(run, program, language, message):
    found = run("diff", program, "--to", language)
    assert (found.status, found.out) == (1, "")
    assert message in found.err


@pytest.mark.parametrize("language", ["javascript", "rust", "julia", "matlab"])
def test_tensors_are_refused(run, language):
    found = run("diff", "sum(eigvalsh(x)**2)", "x=[[1,2],[2,1]]", "--to", language)
    assert "'x' is a tensor" in found.err


@pytest.mark.parametrize(("language", "runner"), RUNNERS)
def test_names(tmp_path, language, runner):
    """Hundreds of names, with keywords and functions of many languages among them."""
    formulas = derivatives_as_formulas(parse(test_names_of.PROGRAM), {}, ["z"], 1)
    document = languages.document(language, formulas)
    (text,) = document.members["derivatives"].values()
    (function,) = re.findall(r"\b(derivative_z\w*)\(", text)[:1]
    values = {**test_names_of.VALUES, "z": 1.0}
    read = [v.name for v in formulas.value.inputs]
    call = Call(0, function, [values[name] for name in read], 1)
    assert runner([text], [call], tmp_path) == [[pytest.approx(test_names_of.EXPECTED)]]
