"""Tests every primitive in every language that has it: the printed code evaluates to the primitive's own number."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars
import pytest
from scipy import special

import gradcli
from gradcli import arrays
from gradcli.formulas import languages
from gradcli.formulas.languages.text import text
from gradcli.formulas.simplification.formula import formula
from gradcli.formulas.writing.text_writer import write
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from gradcli.primitives.bind import bind
from gradcli.primitives.entries import reductions
from gradcli.primitives.entries.comparisons import greater
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program
from gradcli.program.record import record
from tests.primitives.test_primitives import CASES, PRIMITIVES
from tests.printed_code import NEEDS_GCC, database, in_c
from tests.samples import several

NAMES = ("x", "y", "z", "w", "v")
# Operands for functions of one or two numbers; those of three use the first ones.
NUMBERS = (0.3, 0.8, -0.6, 1.7, 2.5, 0.0, 0.8)
LIMIT = 1e6
# The number of boolean operands.
TRUTHS = {"where": 1, "logical_not": 1, "logical_and": 2, "logical_or": 2}


class Sample(NamedTuple):
    """A program of a single primitive, and its value."""

    name: str
    program: Program
    inputs: dict[str, Any]
    value: Any


def sample(primitive: Primitive, operands: Sequence[Any], params: Any = None) -> Sample:
    """A sample of a primitive; boolean operands are computed by a comparison with 0."""
    inputs = dict(zip(NAMES, operands))

    def applied(**given: Any) -> list[Any]:
        truths = TRUTHS.get(primitive.name, 0)
        values = [greater(v, 0.0) if i < truths else v for i, v in enumerate(given.values())]
        return [bind(primitive, values, params or {})]

    with arrays.quiet():
        traced = record(applied, inputs)
    return Sample(primitive.name, traced.program, inputs, traced.values[0])


def recorded(case: Any) -> Sample | None:
    """A case of the table as a sample, if it is one equation."""
    inputs = dict(zip(NAMES, case.operands))
    traced = record(lambda **given: [case.call(*given.values())], inputs)
    alone = len(traced.program.equations) == 1
    return (
        Sample(traced.program.equations[0].primitive.name, traced.program, inputs, traced.values[0]) if alone else None
    )


@functools.cache
def samples_of_cases() -> dict[str, list[Sample]]:
    """The cases of the table that are one equation, by their primitive."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for case in CASES:
        if case.operands and (made := recorded(case)) is not None:
            found[made.name].append(made)
    # The samples of the table do not distinguish these.
    for p in (reductions.any_, reductions.all_):
        found[p.name].append(sample(p, [np.array([0.0, 1.0])], {"axis": (0,), "keepdims": False}))
    return found


@functools.cache
def samples_of_numbers(primitive: Primitive) -> list[Sample]:
    """Samples of an elementwise primitive at all numbers where it is defined."""
    if not primitive.elementwise:
        return []
    params: list[Any] = []
    for made in samples_of_cases()[primitive.name]:
        (equation,) = made.program.equations
        if equation.params not in params:
            params.append(equation.params)
    count = len(primitive.vjp or primitive.parameters)
    points = itertools.product(NUMBERS[: 7 if count < 3 else 3], repeat=count)
    return [
        made
        for chosen, operands in itertools.product(params or [{}], [*points])
        if not _is_strange(primitive, operands) and abs((made := sample(primitive, operands, chosen)).value) < LIMIT
    ]


def _is_strange(primitive: Primitive, operands: Sequence[float]) -> bool:
    """Whether libraries define it differently: SciPy does not continue zeta analytically."""
    if primitive.name == "hurwitz_zeta":
        return operands[0] < 1
    return primitive.name == "clip" and operands[1] > operands[2]


def samples_in(language: str, primitive: Primitive) -> list[Sample]:
    """The samples of a primitive for a language with tensors."""
    made = [*samples_of_numbers(primitive), *samples_of_cases()[primitive.name]]
    if language == "text" and primitive.name == "bessel_i":
        return [m for m in made if m.program.equations[-1].params.get("n", 0) < 2]
    return made


# Primitives of complex numbers, whose texts are tested in test_complex_language, test_wirtinger and
# test_elliptic_functions.
OF_COMPLEX = {
    *("complex", "conjugate", "real_part", "imaginary_part", "phase", "eigvals", "eigenbasis", "phased_right_vectors"),
    *("determinant_phase", "polynomial_roots", "fourier", "half_fourier", "inverse_half_fourier"),
    *("elliptic_p", "elliptic_p_prime", "theta_slope", "eisenstein"),
}


def all_in(language: str) -> Any:
    """Parametrises a test over every primitive of real numbers that the language has, and that programs record: those with
    a definition are recorded as that."""
    recorded = [p for p in PRIMITIVES if p.definition is None and p.name not in OF_COMPLEX]
    known = [p for p in recorded if languages.find(language).writes(p)]
    return several("primitive", known, lambda p: p.name)


def written(language: str, made: Sample) -> list[str]:
    """The named parts of a program, as assignments, and its result."""
    found = write(made.program, languages.find(language))
    return [*(f"{name} = {part}" for name, part in found.parts), found.result]


def assert_number(found: Any, made: Sample, rtol: float = 1e-13) -> None:
    np.testing.assert_allclose(found, made.value, rtol=rtol, atol=1e-14, err_msg=str(made))


@pytest.mark.cases(4)
@all_in("text")
def test_text(primitive):
    compiled, samples = functools.cache(gradcli.compile), samples_in("text", primitive)
    assert samples
    for made in samples:
        program = compiled("\n".join(written("text", made)))
        assert_number(program(**{n: v for n, v in made.inputs.items() if n in program.inputs}), made)


@all_in("python")
def test_python(primitive):
    samples = samples_in("python", primitive)
    assert samples
    for made in samples:
        known = {"np": np, "special": special, **made.inputs}
        *parts, result = written("python", made)
        with np.errstate(all="ignore"):
            exec("\n".join(parts), known)
            assert_number(eval(result, known), made)


@NEEDS_GCC
def test_c(tmp_path):
    of_real = [p for p in PRIMITIVES if p.name not in OF_COMPLEX]
    known = {p.name: samples_of_numbers(p) for p in of_real if languages.find("c").writes(p)}
    assert all(known.values())
    samples = [*itertools.chain.from_iterable(known.values())]
    names: dict[str, str] = {}
    called = []
    for made in samples:
        *parts, result = written("c", made)
        parameters = ", ".join(f"double {n}" for n in made.inputs)
        body = f"({parameters}) {{ {' '.join(f'double {p};' for p in parts)} return {result}; }}"
        called.append(names.setdefault(body, f"f{len(names)}"))
    text_in_c = "\n".join(["#include <math.h>", *(f"double {name}{body}" for body, name in names.items())])
    functions = in_c(text_in_c, tmp_path, "-O0")
    for name, made in zip(called, samples):
        assert_number(functions(name)(*map(ctypes.c_double, made.inputs.values())), made)


@pytest.mark.parametrize("dialect", [None, "sqlite"])
@all_in("sql")
def test_sql(primitive, dialect):
    connection, samples = database(), samples_of_numbers(primitive)
    assert samples
    for made in samples:
        result = write(made.program, languages.find("sql", dialect)).result
        columns = ", ".join(f"{v!r} AS {name}" for name, v in made.inputs.items())
        ((found,),) = connection.execute(f"SELECT {result} FROM (SELECT {columns})").fetchall()
        assert_number(found, made, 1e-12)


# Polars has these only for divisors that are powers of two.
_NOT_IN_POLARS = {"remainder", "floor_divide"}


@all_in("polars")
def test_polars(primitive):
    """All samples of a function in one table."""
    if primitive.name in _NOT_IN_POLARS:
        return
    samples = samples_of_numbers(primitive)
    assert samples
    results, frame = {}, {}
    for n, made in enumerate(samples):
        *parts, result = written("polars", made)
        known = {"pl": polars} | {name: polars.col(f"{name}{n}").cast(polars.Float64) for name in made.inputs}
        exec("\n".join(parts), known)
        results[f"r{n}"] = eval(result, known)
        frame |= {f"{name}{n}": [value] for name, value in made.inputs.items()}
    (found,) = polars.DataFrame(frame).select(**results).rows()
    for number, made in zip(found, samples, strict=True):
        assert_number(number, made, 1e-12)


# LaTeX cannot be evaluated. The primitives that are not written by their names:
IN_LATEX = {
    "cast": "x", "identity": "x", "add": "x + y", "subtract": "x - y", "multiply": "x y", "divide": r"\frac{x}{y}",
    "negative": "-x", "reciprocal": r"\frac{1}{x}", "abs": r"\left|x\right|", "floor": r"\left\lfloor x\right\rfloor",
    "ceil": r"\left\lceil x\right\rceil", "where": r"\begin{cases} y & x > 0 \\ z & \text{otherwise} \end{cases}",
    "less": "x < y", "less_equal": r"x \le y", "greater": "x > y", "greater_equal": r"x \ge y", "equal": "x = y",
    "not_equal": r"x \ne y", "logical_not": r"\lnot \left(x > 0\right)", "logical_and": r"x > 0 \land y > 0",
    "logical_or": r"x > 0 \lor y > 0", "pow": "x^{y}", "whole_power": "x^{3}", "sqrt": r"\sqrt{x}",
    "flat_sqrt": r"\sqrt{x}", "rsqrt": r"\frac{1}{\sqrt{x}}", "cbrt": r"\sqrt[3]{x}", "exp": "e^{x}", "exp2": "2^{x}",
    "partial_of_one": r"\partial_{1} \operatorname{ellipkm1}\left(x\right)",
    "partial_of_two": r"\partial_{1} \operatorname{kv}\left(x, y\right)",
    "partial_of_three": r"\partial_{1} \operatorname{betainc}\left(x, y, z\right)",
    "partial_of_four": r"\partial_{1} \operatorname{hyp2f1}\left(x, y, z, w\right)",
    "permute": r"x^{\top}", "index": "x_{1}", "matmul": "x y", "inv": "x^{-1}",
}  # fmt: skip
# Functions with other names in LaTeX.
COMMANDS = {
    "asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan", "log2": r"\log_2", "log10": r"\log_{10}", "gamma": r"\Gamma",
    "beta": r"\mathrm{B}",
    "digamma": r"\psi", "lgamma": r"\log\Gamma", "sigmoid": r"\sigma", "riemann_zeta": r"\zeta", "hurwitz_zeta": r"\zeta",
    "jv_of_number": r"\operatorname{jv}", "scaled_i": r"\operatorname{i0e}",
    **{name: f"\\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "coth", "log", "det")},
}  # fmt: skip


@all_in("latex")
def test_latex(primitive):
    name, found = primitive.name, written("latex", samples_in("latex", primitive)[0])[-1]
    if name in IN_LATEX:
        assert found == IN_LATEX[name]
    else:
        command = COMMANDS.get(name, f"\\operatorname{{{name}}}".replace("_", r"\_"))
        assert found.startswith(f"{command}\\left(x")


@pytest.mark.cases(4)
@all_in("text")
def test_what_the_algebra_knows_of_a_function(primitive):
    """As a formula, a program of the function alone has the same number."""
    compiled = functools.cache(gradcli.compile)
    for made in samples_of_numbers(primitive):
        # Two formulas are equal at single points only, which formulas ignore.
        if made.name in ("equal", "not_equal") and made.inputs["x"] == made.inputs["y"]:
            continue
        # Orders from 2 on are expressed by lower ones and 1/x.
        if made.name == "bessel_j" and made.inputs["x"] == 0:
            continue
        program = compiled(text(formula(made.program._replace(guards=()))))
        assert_number(program(**{n: v for n, v in made.inputs.items() if n in program.inputs}), made)


@pytest.mark.parametrize(
    "source",
    [
        "log(exp(x)*y)", "log(exp(2*x))", "log(e)*x", "log(1) + x", "abs(-3)*x", "abs(x**2)*y", "abs(x)*y", "hypot(3, 4)*x",
        "where(x > x, y, 1)", "where(x > -9, x, x)", "where(logical_and(x > 0, True), y, x)", "where(logical_or(x > 9, False), y, x)",
        "where(logical_or(x > 9, True), y, x)", "where(logical_and(x > 0, False), y, x)", "where(logical_not(x == x), y, x)",
        "where(x == x + 1, y, x)", "where(x != x + 1, y, x)", "where(isfinite(x), y, x)", "where(isnan(x), y, x)",
        "diff(i1(x), x)", "diff(diff(diff(i0(x), x), x), x)", "diff(diff(diff(j0(x), x), x), x)", "diff(diff(sinc(x), x), x)",
    ],
)  # fmt: skip
def test_what_the_algebra_knows_of_functions_of_what_it_knows(source):
    inputs = {"x": 0.8, "y": 1.7}
    traced = record(lambda **given: [evaluate(parse(source), given, rewrite=False).value], inputs)
    program = gradcli.compile(text(formula(traced.program._replace(guards=()))))
    np.testing.assert_allclose(
        program(**{n: inputs[n] for n in program.inputs if n in inputs}),
        gradcli.compile(source)(**{n: inputs[n] for n in gradcli.compile(source).inputs if n in inputs}),
        rtol=1e-12,
    )
