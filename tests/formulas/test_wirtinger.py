"""Tests Wirtinger's derivatives as formulas: each is compared with the numbers of `gradcli eval --wirtinger`."""

from __future__ import annotations

import cmath
import json
import random
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest

# Points in all quadrants, inside and outside of the unit circle; those of w are real.
Z = [cmath.rect(0.2 * 1.3**k, 2.4 * k + 0.9) for k in range(11)]
U = [cmath.rect(0.3 * 1.25**k, 2.4 * k - 0.6) for k in range(11)]
W = [(-1) ** k * (0.25 + 0.3 * k) for k in range(11)]

PROGRAMS = [
    "conj(z)", "z*conj(z)", "abs(z)", "abs(z)**2", "abs(z)**3", "1/abs(z)", "abs(z)**1.5", "sqrt(abs(z))", "z*abs(z)",
    "conj(z)*abs(z)", "z/abs(z)", "sgn(z)", "conj(z)/z", "real(z)", "imag(z)", "real(z)**2", "real(z)*imag(z)", "angle(z)",
    "z*angle(z)", "angle(z)**2", "log(abs(z))", "log(z*conj(z))", "conj(log(z))*z", "exp(real(z))", "exp(-abs(z)**2)",
    "exp(conj(z))", "exp(1j*real(z))", "cos(imag(z))*z", "sin(conj(z)*z)", "sinh(conj(z))", "tanh(abs(z))",
    "tanh(abs(z))*z/abs(z)", "conj(sqrt(z))", "sqrt(conj(z)*2)", "conj(z)**2.5", "conj(asin(z))", "atan(conj(z))", "conj(atanh(z))*z",
    "gamma(conj(z))", "erf(conj(z))*z", "conj(expi(z))", "lambertw(conj(z))", "real(z**2)", "imag(exp(z))", "real(exp(1j*z))*conj(z)",
    "abs(z + 1)", "abs(z**2 + 1j)", "abs((z - 1)/(z + 1))", "abs(exp(z))", "abs(sin(z))", "abs(2j*z)", "abs(conj(z))*abs(z)",
    "abs(abs(z) + z)", "angle(z + 1j)", "angle(z**2)", "-log(1 + abs(z)**2)", "1/(1 + z*conj(z))", "z/(1 + abs(z))",
    "complex(real(z)**2, imag(z))", "polar(abs(z)**2, 2*angle(z))", "where(real(z) > 0, z, conj(z))", "where(abs(z) > 1, 1/z, conj(z))",
    "maximum(real(z), imag(z))", "abs(real(z))", "minimum(abs(z), 1)*z", "(z + conj(z))**3", "x = real(z); y = imag(z); x**2 + 1j*x*y",
    "f(t) = t*conj(t); f(z + 1) + f(1j*z)", "hypot(real(z), 2*imag(z))", "atan2(imag(z), real(z))*conj(z)", "z.conj()*z.real", "z**conj(z)",
    "u*conj(z)", "abs(z - u)", "abs(z - u)**2", "real(z*conj(u))", "z*conj(u)/abs(u)", "abs(z*u + 1)", "exp(conj(z)*u)", "angle(z*u)*z",
    "w*abs(z)", "abs(z - w)", "w*z*conj(u)", "abs(z)**w", "abs(1j*w + z)", "log(abs(z*w))", "1/(1 + 1j*w*conj(z))", "exp(1j*w*real(z))",
    "sqrt(z**2)", "log(z**3)*conj(z)", "sqrt(z)*sqrt(conj(z))", "sqrt(z*conj(z))", "log(exp(conj(z)))", "(conj(z)**2)**0.5",
]  # fmt: skip


def values_of(program):
    """The inputs of a program as words of a command line, each with all points."""
    reads = {"z": Z, "u": U, "w": W}
    return [f"{n}={list(p)}".replace("(", "").replace(")", "") for n, p in reads.items() if n in names_in(program)]


def names_in(program):
    return set(re.findall(r"(?<![\w.])[zuw](?!\w)", program))


def complex_of(found):
    if isinstance(found, dict):
        return np.asarray(found["re"], float) + 1j * np.asarray(found["im"], float)
    return np.asarray(found, float) + 0j


def numbers(run, program, *options):
    found = run("eval", program, *values_of(program), "--no-grad", "--json", *options)
    assert found.status == 0, found.err
    return np.broadcast_to(complex_of(json.loads(found.out.replace('"NaN"', "NaN"))["value"]), len(Z))


def known_derivatives(run, program):
    """The derivatives of an elementwise program at all points."""
    *before, last = program.split("; ")
    total = "; ".join([*before, f"sum({last})"])
    found = json.loads(run("eval", total, *values_of(program), "--wirtinger", "--json").out.replace('"NaN"', "NaN"))
    known = {name: complex_of(d) for name, d in found["grad"].items()}
    for name, pair in found["wirtinger"].items():
        known |= {name: complex_of(pair["by"]), f"conj({name})": complex_of(pair["by_conjugate"])}
    return known


def check_formulas(run, program):
    """Compare the formulas of a program with the numbers, and return them."""
    point = [f"{n}={v}" for n, v in (("z", "1+2j"), ("u", "2-1j"), ("w", "0.5")) if n in names_in(program)]
    found = run("diff", program, *point, "--wirtinger", "--json")
    assert found.status == 0, found.err
    formulas, known = found.json["derivatives"], known_derivatives(run, program)
    assert formulas.keys() == known.keys()
    for name, formula in formulas.items():
        # The derivatives at a point have the rounding error of the largest of them.
        scale = np.max([np.abs(d) for d in known.values()], axis=0)
        finite = np.isfinite(known[name]) & (1e-13 * scale < 1e-9 + 1e-8 * np.abs(known[name]))
        assert finite.sum() > 4
        np.testing.assert_allclose(numbers(run, formula)[finite], known[name][finite], rtol=1e-7, atol=1e-9)
    return formulas


@pytest.mark.cases(4)
@pytest.mark.parametrize("program", PROGRAMS)
def test_formulas_are_the_derivatives(run, program):
    check_formulas(run, program)


def random_program(seed):
    chosen = random.Random(seed)
    leaves = ["z", "conj(z)", "abs(z)", "real(z)", "imag(z)", "u", "w", "2", "1j", "0.5"]
    unary = [
        "exp({})",
        "sin({})",
        "cosh({})",
        "sqrt({} + 3)",
        "log({} + 4)",
        "conj({})",
        "abs({})",
        "real({})",
        "({})**2",
    ]
    binary = ["({} + {})", "({} - {})", "({})*({})", "({})/({} + 5)"]

    def build(depth):
        if depth == 0:
            return chosen.choice(leaves)
        if chosen.random() < 0.45:
            return chosen.choice(unary).format(build(depth - 1))
        return chosen.choice(binary).format(build(depth - 1), build(depth - 1))

    return f"{build(3)} + z"


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(30))
def test_formulas_of_random_programs_are_the_derivatives(run, seed):
    check_formulas(run, random_program(seed))


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("program", "by", "by_conjugate"),
    [
        ("abs(z)**2", "conj(z)", "z"),
        ("abs(z)", "conj(z)/(2*abs(z))", "z/(2*abs(z))"),
        ("z*abs(z)", "3*abs(z)/2", "z**2/(2*abs(z))"),
        ("log(abs(z))", "1/(2*z)", "1/(2*conj(z))"),
        ("angle(z)", "-1j/(2*z)", "1j/(2*conj(z))"),
        ("real(z)", "1/2", "1/2"),
        ("imag(z)", "-1j/2", "1j/2"),
        ("sgn(z)", "1/(2*abs(z))", "-z**2/(2*abs(z)**3)"),
        ("exp(-abs(z)**2)", "-conj(z)*exp(-abs(z)**2)", "-z*exp(-abs(z)**2)"),
        ("-log(1 - abs(z)**2)", "conj(z)/(1 - abs(z)**2)", "z/(1 - abs(z)**2)"),
        ("exp(real(z))", "exp(real(z))/2", "exp(real(z))/2"),
        ("conj(log(z))", "0", "1/conj(z)"),
        ("z**3", "3*z**2", "0"),
        ("if real(z) > 0 { y = z } else { y = conj(z) }; y", "where(real(z) > 0, 1, 0)", "where(real(z) > 0, 0, 1)"),
    ],
)
def test_formulas_are_what_a_person_would_write(run, program, by, by_conjugate):
    assert run("diff", program, "--wirtinger").out == f"z: {by}\nconj(z): {by_conjugate}\n"


@pytest.mark.slow
def test_a_program_with_many_moduli_stays_within_the_limits(run):
    check_formulas(run, "+ ".join(f"abs(z - {n})" for n in range(30)))


class TestInputs:
    def test_names_without_a_value_are_complex(self, run):
        assert run("diff", "abs(z - c)**2", "--wrt", "z", "--wirtinger").out == "z: conj(z) - conj(c)\nconj(z): z - c\n"
        assert (
            run("diff", "abs(z - c)**2", "c=2", "--wrt", "z", "--wirtinger").out == "z: conj(z) - 2\nconj(z): z - 2\n"
        )
        assert run("diff", "abs(z - c)**2", "c=2j", "--wrt", "z", "--wirtinger").out == (
            "z: 2*1j + conj(z)\nconj(z): z - 2*1j\n"
        )

    def test_real_and_complex_ones(self, run):
        assert run("diff", "w*z*abs(z)", "z=1+2j", "w=2", "--wirtinger").out == (
            "w: z*abs(z)\nz: 3*w*abs(z)/2\nconj(z): w*z**2/(2*abs(z))\n"
            "# w: 2.23606797749979+4.47213595499958j at w=2.0, z=1.0+2.0j\n"
            "# z: 6.708203932499369+0.0j at w=2.0, z=1.0+2.0j\n"
            "# conj(z): -1.3416407864998736+1.788854381999832j at w=2.0, z=1.0+2.0j\n"
        )

    def test_none_is_complex(self, run):
        done = run("diff", "x**2", "x=1", "--wirtinger")
        assert done.status == 1
        assert "none is complex" in done.err

    def test_tensors(self, run):
        assert "those of numbers" in run("diff", "sum(abs(z))", "z=[1, 2j]", "--wirtinger").err
        assert "those of numbers" in run("diff", "z[0]*conj(z[1])", "--wirtinger").err
        assert "those of numbers" in run("diff", "1j*x[0]", "--wrt", "x").err
        assert "gradcli eval" in run("diff", "sum([z, conj(z)])", "z=1j", "--wirtinger").err


class TestWithoutTheOption:
    """A real value has a gradient, and a complex one a derivative where it is proved to be holomorphic."""

    @pytest.mark.parametrize(
        ("words", "formula"),
        [
            (("abs(z)**2", "z=1j"), "2*z\n# 0.0+2.0j at z=0.0+1.0j\n"),
            (("real(z*conj(w))", "z=1+2j", "w=3"), "z: w\nw: real(z)\n# z: 3.0+0.0j at z=1.0+2.0j, w=3.0\n# w: 1.0 at z=1.0+2.0j, w=3.0\n"),
            (("complex(real(z)**2 - imag(z)**2, 2*real(z)*imag(z))", "z=1+2j"), "2*z\n# 2.0+4.0j at z=1.0+2.0j\n"),
            (("log(abs(z)) + 1j*angle(z)", "z=2j", "--order", "2"), "-1/z**2\n# 0.25+0.0j at z=0.0+2.0j\n"),
            # Real inputs need no conjugates.
            (("abs(1/(1 + 1j*w*R*C))", "--wrt", "w"), "-w*R**2*C**2/abs(1j*w*R*C + 1)**3\n"),
            (("angle(1 + 1j*w*T)",), "w: T/(w**2*T**2 + 1)\nT: w/(w**2*T**2 + 1)\n"),
            (("real(1j*w**2)",), "0\n"),
            (("complex(a, b)**2",), "a: 2*1j*b + 2*a\nb: 2*1j*a - 2*b\n"),
            (("abs(exp(1j*w)*a)", "--order", "2", "--wrt", "a"), "0\n"),
        ],
    )  # fmt: skip
    def test_formulas(self, run, words, formula):
        assert run("diff", *words).out == formula

    @pytest.mark.parametrize("words", [("z*conj(z)**2", "z=1+2j"), ("abs(z)*w + 0j", "z=1", "w=2j", "--wrt", "w")])
    def test_what_is_not_holomorphic_names_a_command_that_runs(self, run, words):
        done = run("diff", "abs(z)*conj(w)", *words[1:]) if "--wrt" in words else run("diff", *words)
        assert done.status == 1
        assert "the program is not holomorphic, or not known to be" in done.err
        command = done.err.partition("hint: gradcli ")[2].partition(" gives the derivatives")[0]
        assert run(*shlex.split(command)).status == 0

    def test_a_real_value_has_no_second_derivative(self, run):
        assert "no second derivative" in run("diff", "abs(z)**2", "z=1j", "--order", "2").err


class TestOrders:
    def test_the_second(self, run):
        assert run("diff", "abs(z)**4", "--wirtinger", "--order", "2").out == (
            "z,z: 2*conj(z)**2\nz,conj(z): 4*abs(z)**2\nconj(z),conj(z): 2*z**2\n"
        )

    def test_values(self, run):
        values = run("diff", "abs(z)**4", "z=1+2j", "--wirtinger", "--order", "2", "--json").json["values"]
        assert {key: complex_of(v).item() for key, v in values.items()} == pytest.approx(
            {"z,z": 2 * (1 - 2j) ** 2, "z,conj(z)": 20, "conj(z),conj(z)": 2 * (1 + 2j) ** 2}
        )
        assert "of order 1" in run("diff", "abs(z)", "z=1j", "--wirtinger", "--order", "2", "--digits", "20").err

    def test_proved_digits(self, run):
        out = run("diff", "z*conj(z)*z", "z=1+2j", "--wirtinger", "--digits", "20").out
        assert out.endswith("# z: 10+0j at z=1+2j\n# conj(z): -3+4j at z=1+2j\n")


PROGRAM = "where(real(z) > 0, exp(real(z))*conj(z)*imag(z), log(abs(z))*angle(z) + w*abs(real(z)))"


def known_numbers(run, z):
    found = run("eval", PROGRAM, f"z={z}", "w=0.7", "--wirtinger", "--json").json
    pair = found["wirtinger"]["z"]
    return [complex(complex_of(n)) for n in (found["value"], pair["by"], pair["by_conjugate"], found["grad"]["w"])]


class TestLanguages:
    def test_python(self, run):
        names: dict = {}
        exec(run("diff", PROGRAM, "z=1+2j", "w=1", "--wirtinger", "--to", "python").out, names)
        for z in (0.4 + 2j, -0.5 + 0.7j, -1 - 1j):
            assert names["value_and_derivatives"](z=z, w=0.7) == pytest.approx(known_numbers(run, z))
            assert names["derivative_conj_z"](z=z, w=0.7) == pytest.approx(known_numbers(run, z)[2])

    def test_c(self, run, tmp_path):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        code = run("diff", PROGRAM, "z=1+2j", "w=1", "--wirtinger", "--to", "c").out
        (tmp_path / "f.c").write_text(
            f"#include <stdio.h>\n{code}"
            + """
            int main(void) {
                double complex points[] = {0.4 + 2*I, -0.5 + 0.7*I, -1 - I}, r[4];
                for (int k = 0; k < 3; k++) {
                    value_and_derivatives(points[k], 0.7, r);
                    for (int i = 0; i < 4; i++) printf("%.17g %.17g\\n", creal(r[i]), cimag(r[i]));
                }
                return 0;
            }"""
        )
        subprocess.run([compiler, "-Wall", "-Werror", "-o", "f", "f.c", "-lm"], cwd=tmp_path, check=True)
        lines = subprocess.run(["./f"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
        found = [complex(*map(float, line.split())) for line in lines]
        assert found == pytest.approx([n for z in (0.4 + 2j, -0.5 + 0.7j, -1 - 1j) for n in known_numbers(run, z)])

    def test_latex(self, run):
        assert run("diff", "abs(z)*conj(z)", "--wirtinger", "--to", "latex").out == (
            "z: \\frac{\\overline{z}^{2}}{2 \\left|z\\right|}\nconj(z): \\frac{3 \\left|z\\right|}{2}\n"
        )
        out = run("diff", "exp(real(z))*imag(z)*angle(z)", "--wirtinger", "--to", "latex").out
        assert all(part in out for part in (r"\operatorname{Re}\left(z\right)", r"\operatorname{Im}", r"\arg\left(z"))

    def test_json(self, run):
        found = run("diff", "z*abs(z)", "z=2j", "--wirtinger", "--json").json
        assert found["derivatives"] == {"z": "3*abs(z)/2", "conj(z)": "z**2/(2*abs(z))"}
        assert found["values"] == {"z": {"re": 3.0, "im": 0.0}, "conj(z)": {"re": -1.0, "im": 0.0}}

    @pytest.mark.parametrize("language", ["sql", "polars", "julia", "rust", "excel"])
    def test_others_have_no_complex_numbers(self, run, language):
        done = run("diff", "z*abs(z)", "--wirtinger", "--to", language)
        assert done.status == 1
        assert f"cannot be written as {language}" in done.err
