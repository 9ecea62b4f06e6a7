"""Tests complex numbers as a user types and reads them: literals, values, files, tables, JSON and derivatives."""

from __future__ import annotations

import cmath
import json
import math
import shutil
import subprocess

import mpmath
import numpy as np
import polars
import pytest

import gradcli


def number(value):
    """The complex number, or the array of them, in a JSON value."""
    if isinstance(value, dict):
        return np.asarray(value["re"], float) + 1j * np.asarray(value["im"], float)
    return np.asarray(value, float)


class TestLiterals:
    @pytest.mark.parametrize(
        ("program", "value"),
        [
            ("2j", 2j), ("1.5e3j", 1500j), (".5J", 0.5j), ("1_0j", 10j), ("2i", 2j), ("3+4i", 3 + 4j), ("-2i", -2j),
            ("3 - 1.5i", 3 - 1.5j), ("2j**2", -4), ("(2i)^2", -4), ("1i^2", -1), ("1j²", -1), ("1/2j", -0.5j),
            ("√(-4+0j)", 2j), ("2j*3i", -6), ("[1, 2j][1]", 2j), ("2jx", 6),
        ],
    )  # fmt: skip
    def test_values(self, run, program, value):
        words = ["x=3"] if "x" in program else []
        words = ["jx=3"] if "jx" in program else words
        assert number(run("eval", program, *words, "--no-grad", "--json").json["value"]) == value

    @pytest.mark.parametrize(
        ("program", "one", "other"),
        [
            ("2i^2", "2*(1i^2)", "(2i)^2"), ("2j^2", "2*(1j^2)", "(2j)^2"), ("2j²", "2*(1j²)", "(2j)²"),
            ("1/2i", "1/(2i)", "1/2*1i"), ("√2i", "√(2i)", "√2*1i"),
        ],
    )  # fmt: skip
    def test_what_can_be_read_in_two_ways_shows_both(self, run, program, one, other):
        done = run("eval", program)
        assert done.status == 2
        assert f"this can be read as {one} and as {other}" in done.err
        for reading in (one, other):
            assert run("eval", reading, "--no-grad").status == 0

    def test_a_name_with_a_value_is_a_factor(self, run):
        assert run("eval", "2i", "i=3", "--json").json["grad"] == {"i": 2.0}
        assert run("eval", "s = 0; for i in range(4) { s += 2i }; s", "--no-grad", "--bare").out == "12.0\n"
        assert "has no value yet" in run("eval", "y = 2i; i = 3; y").err

    def test_an_imaginary_number_beside_a_name_j_shows_both(self, run):
        done = run("eval", "2j + j", "j=3")
        assert "this can be read as 2*j and as 2*1j" in done.err
        assert run("eval", "2*j + j", "j=3", "--bare").out == "9.0\n"

    @pytest.mark.parametrize("name", ["i", "j", "I"])
    def test_a_bare_unit_offers_one(self, run, name):
        done = run("eval", f"1 + {name}")
        assert done.status == 2
        assert "write 1j for the imaginary unit" in done.err

    @pytest.mark.parametrize(
        ("written", "meant"),
        [("3∠45°", "polar(3, pi/4)"), ("3∠-90°", "polar(3, -pi/2)"), ("2∠50°", "polar(2, deg2rad(50))"), ("2∠0.5", "polar(2, 0.5)")],
    )  # fmt: skip
    def test_an_angle_shows_polar(self, run, written, meant):
        done = run("eval", "z", f"z={written}")
        assert (done.status, f"write {meant}" in done.err) == (2, True)
        assert run("eval", "z", f"z={meant}", "--no-grad").status == 0


class TestFunctions:
    @pytest.mark.parametrize(
        ("program", "words", "value"),
        [
            ("complex(1, 2)", "", 1 + 2j), ("torch.complex(x, 2*x)", "x=3", 3 + 6j), ("polar(2, pi/2)", "", 2j),
            ("z.real + z.imag", "z=1+2j", 3), ("np.real(z)", "z=1+2j", 1), ("imag(z)", "z=1+2j", 2),
            ("z.conj()", "z=1+2j", 1 - 2j), ("conj(z)", "z=1+2j", 1 - 2j), ("angle(z)", "z=2j", math.pi / 2),
            ("arg(z)", "z=2j", math.pi / 2), ("phase(z)", "z=2j", math.pi / 2), ("torch.view_as_real(z)[1]", "z=1+2j", 2),
            ("sum([[z, 1]].H)", "z=1+2j", 2 - 2j), ("sum([[z, 1]].mH)", "z=1+2j", 2 - 2j), ("isreal(z)", "z=1+2j", 0),
            ("iscomplex(z)", "z=1+2j", 1), ("is_complex(z)", "z=1+0j", 1), ("is_complex(x)", "x=3", 0),
            ("abs(z)**2", "z=3+4j", 25), ("torch.view_as_complex([x, 1])", "x=3", 3 + 1j),
        ],
    )  # fmt: skip
    def test_names(self, run, program, words, value):
        found = number(run("eval", program, *words.split(), "--no-grad", "--json").json["value"])
        assert found == pytest.approx(value, abs=1e-15)

    @pytest.mark.parametrize(
        ("program", "written"),
        [
            ("sqrt(-1)", "sqrt(-1+0j)"), ("log(x)", "log(x+0j)"), ("acos(2)", "acos(2+0j)"), ("x**0.5", "(x+0j)**0.5"),
            ("√x", "√(x+0j)"),
        ],
    )  # fmt: skip
    def test_real_numbers_stay_real(self, run, program, written):
        words = ["x=-2"] if "x" in program else []
        done = run("eval", program, *words, "--no-grad")
        assert done.out == "value  nan\n"
        assert f"; write {written} for complex numbers" in done.err
        assert "nan" not in run("eval", written, *words, "--no-grad").out

    @pytest.mark.parametrize("program", ["floor(z)", "z < 1", "max(z, 1)", "atan2(z, 1)"])
    def test_what_has_no_complex_meaning_is_an_error(self, run, program):
        done = run("eval", program, "z=1j")
        assert done.status == 1
        assert "takes real numbers, and not complex ones" in done.err
        assert "^" in done.err

    def test_a_dtype_makes_real_numbers_complex(self, run):
        for program in ("torch.ones(2, dtype=torch.complex128)*x", "np.full(2, x, dtype=complex)"):
            assert run("eval", program, "x=2", "--no-grad").out == "value  [2.+0.j, 2.+0.j]\n"
        assert run("eval", "torch.sum(x, dtype=torch.cdouble)", "x=[1,2]", "--no-grad").out == "value  3.0+0.0j\n"

    @pytest.mark.parametrize("program", ["torch.softmax(z, 0, dtype=torch.float64)", "np.array(z, dtype=float)"])
    def test_a_real_dtype_does_not_drop_imaginary_parts(self, run, program):
        done = run("eval", program, "z=[1j,2]", "--no-grad")
        assert done.status == 1
        assert "cannot make an array of real numbers from complex128 values" in done.err

    @pytest.mark.parametrize(
        ("program", "point"),
        [
            ("log(exp(z))", 1 + 10j), ("log(z**2)", -1 + 1j), ("sqrt(z**2)", -1 + 1j), ("sin(z)/z", 1e-9j),
            ("sqrt(z**2 + 1)", 1 + 2j), ("log(z**3)", -1 + 0.1j), ("(1 - cos(z))/z**2", 0.5j),
        ],
    )  # fmt: skip
    def test_rewrites_of_real_expressions_are_left_out(self, run, program, point):
        names = {"z": point, "log": cmath.log, "exp": cmath.exp, "sqrt": cmath.sqrt, "sin": cmath.sin, "cos": cmath.cos}
        found = number(run("eval", program, f"z={point.real}+{point.imag}j", "--no-grad", "--json").json["value"])
        assert complex(found) == pytest.approx(eval(program, names), rel=1e-12)


class TestValues:
    @pytest.mark.parametrize(
        "text", ["1+2j", "1+2i", "(1+2j)", "complex(1,2)", "2j+1", "polar(sqrt(5), atan2(2,1))", "+1+2J", "1.0+2e0j"]
    )
    def test_on_the_command_line(self, run, text):
        assert number(run("eval", "z", f"z={text}", "--no-grad", "--json").json["value"]) == pytest.approx(1 + 2j)

    def test_in_lists(self, run):
        found = run("eval", "z", "z=[[1, 2j], [3+1j, -1]]", "--no-grad", "--json").json
        np.testing.assert_array_equal(number(found["value"]), [[1, 2j], [3 + 1j, -1]])
        assert (found["dtype"], found["shape"]) == ("complex128", [2, 2])

    def test_single_precision(self, run):
        found = run("eval", "z*z", "z=0.1+0.2j", "--dtype", "float32", "--no-grad", "--json").json
        wanted = np.complex64(0.1 + 0.2j) ** 2
        assert found["dtype"] == "complex64"
        assert number(found["value"]) == pytest.approx(complex(wanted), rel=1e-6)
        assert len(str(found["value"]["re"])) < 14

    def test_numpy_files(self, run, tmp_path):
        array = np.array([[1 + 2j, -0.5j], [3, 4 - 1j]])
        np.save(tmp_path / "a.npy", array.astype("complex64"))
        np.savez(tmp_path / "b.npz", z=array, one=np.array(2 + 1j))
        for reference, wanted in (("a.npy", array), ("b.npz:z", array), ("b.npz:one", 2 + 1j)):
            found = run("eval", "z", f"z=@{tmp_path}/{reference}", "--no-grad", "--json").json["value"]
            np.testing.assert_array_equal(number(found), wanted)

    def test_parquet(self, run, tmp_path):
        polars.DataFrame({"z": [{"re": 1.0, "im": 2.0}, {"re": 0.0, "im": -1.0}], "x": [1, 2]}).write_parquet(
            tmp_path / "a.parquet"
        )
        found = run("eval", "z*x", f"z=@{tmp_path}/a.parquet:z", f"x=@{tmp_path}/a.parquet:x", "--no-grad", "--json")
        np.testing.assert_array_equal(number(found.json["value"]), [1 + 2j, -2j])

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('{"re": 1, "im": 2}', 1 + 2j), ('[{"re": 1, "im": 2}, 3]', [1 + 2j, 3]),
            ('{"re": [1, 0], "im": [2, "Infinity"]}', [1 + 2j, complex(0, math.inf)]),
        ],
    )  # fmt: skip
    def test_json(self, run, tmp_path, text, value):
        (tmp_path / "a.json").write_text(text)
        found = run("eval", "z", f"z=@{tmp_path}/a.json", "--no-grad", "--json").json["value"]
        assert np.array_equal(found["re"], np.real(value))
        (tmp_path / "v.json").write_text(f'{{"z": {text}}}')
        again = run("eval", "z", "--vars", f"{tmp_path}/v.json", "--no-grad", "--json").json["value"]
        assert again == found

    @pytest.mark.parametrize(
        "text",
        [
            '{"re": {"re": 1, "im": 2}, "im": 3}',
            '{"re": 1}',
            '{"re": 1, "im": [2]}',
            '{"re": 1, "im": "x"}',
            '[{"re": 1, "im": null}]',
            '{"a": 1, "im": 2}',
        ],
    )
    def test_json_that_is_no_number(self, run, tmp_path, text):
        (tmp_path / "a.json").write_text(text)
        assert run("eval", "z", f"z=@{tmp_path}/a.json", "--no-grad").status == 2

    def test_what_is_printed_as_json_is_read(self, run, tmp_path):
        value = run("eval", "[z, 1/z]", "z=1+3j", "--no-grad", "--json").json["value"]
        (tmp_path / "a.json").write_text(json.dumps(value))
        assert run("eval", "z", f"z=@{tmp_path}/a.json", "--no-grad", "--json").json["value"] == value

    def test_text_tables(self, run, tmp_path):
        (tmp_path / "a.csv").write_text("w,j\n1,(1+2j)\n2,-1j\n3,0.5\n4,\n5,(nan-1e-3j)\n")
        found = run("eval", "z[:3]", f"z=@{tmp_path}/a.csv:j", "--no-grad", "--json").json["value"]
        np.testing.assert_array_equal(number(found), [1 + 2j, -1j, 0.5])
        (tmp_path / "b.csv").write_text("(1+2j),3\n2,(1-1e3j)\n")
        found = run("eval", "z", f"z=@{tmp_path}/b.csv", "--no-grad", "--json").json["value"]
        np.testing.assert_array_equal(number(found), [[1 + 2j, 3], [2, 1 - 1000j]])


class TestOutput:
    def test_tables(self, run):
        assert run("eval", "1+2j", "--no-grad").out == "value  1.0+2.0j\n"
        assert run("eval", "-0.5-1e-9j", "--no-grad").out == "value  -0.5-1e-09j\n"
        assert run("eval", "[1+2j, -10.5-3j]", "--no-grad").out == "value  [  1. +2.j, -10.5-3.j]\n"

    def test_bare(self, run):
        assert run("eval", "[1+2j, 3]", "--bare").out == "1.0+2.0j\n3.0+0.0j\n"

    def test_precision(self, run):
        assert run("eval", "exp(1j)", "--no-grad", "--precision", "3").out == "value  0.54+0.841j\n"

    def test_polar(self, run):
        assert run("eval", "2j", "--no-grad", "--polar", "--precision", "4").out == "value  polar(2, 1.571)\n"
        done = run("eval", "z", "z=[2j, 1]", "--no-grad", "--polar")
        assert done.out == "value  [polar(2.0, 1.5707963267948966), polar(1.0, 0.0)]\n"
        assert run("eval", "3.5", "--no-grad", "--polar").out == "value  3.5\n"
        assert "--polar is for tables" in run("eval", "2j", "--polar", "--json").err

    def test_saved_arrays(self, run, tmp_path):
        run("eval", "sum(abs(z)**2)", "z=[1+2j, 3j]", "--save", f"{tmp_path}/a.npz")
        np.testing.assert_allclose(np.load(tmp_path / "a.npz")["grad/z"], [2 + 4j, 6j])


class TestDerivatives:
    def test_a_second_derivative_where_a_comparison_ties(self, run):
        found = run("eval", "where(x > x, w, z)**-1", "z=1+1j", "w=1j", "x=2", "--order", "2", "--json")
        assert number(found.json["derivatives"]["z,z"]) == pytest.approx(2 / (1 + 1j) ** 3)

    def test_a_quotient_whose_divisor_is_made_complex(self, run):
        assert number(run("eval", "sinh(y)/complex(y, y)", "y=0.5", "--json").json["value"]) == pytest.approx(
            math.sinh(0.5) / (0.5 + 0.5j)
        )

    def test_a_real_value_has_the_gradient_of_pytorch(self, run):
        found = run("eval", "abs(z)**2 + real(z*w)", "z=1+2j", "w=3", "--json").json
        assert number(found["grad"]["z"]) == pytest.approx(5 + 4j)
        assert found["grad"]["w"] == 1.0

    @pytest.mark.parametrize(
        ("program", "gradient"),
        [
            ("f(z) = abs(z)**2; grad(f)(z)", 2 + 4j), ("from jax import grad; f(z) = abs(z)**2; grad(f)(z)", 2 - 4j),
            ("diff(abs(z)**2, z)", 2 + 4j), ("jax.jacrev(lambda z: abs(z)**2)(z)", 2 - 4j),
            ("torch.func.grad(lambda z: torch.abs(z)**2)(z)", 2 + 4j),
            ("y = z**2; torch.autograd.grad(y, z, 1j)[0]", 4 + 2j), ("diff(z**3, z, 2)", 6 + 12j),
        ],
    )  # fmt: skip
    def test_within_a_program(self, run, program, gradient):
        assert number(run("eval", program, "z=1+2j", "--no-grad", "--json").json["value"]) == pytest.approx(gradient)

    def test_a_complex_value_of_real_inputs(self, run):
        found = run("eval", "1/(1 + 1j*w*t)", "w=2", "t=0.5", "--order", "2", "--json").json
        assert number(found["grad"]["w"]) == pytest.approx(-0.25)
        assert number(found["derivatives"]["w,w"]) == pytest.approx(0.125 + 0.125j)
        assert number(found["derivatives"]["w,t"]) == pytest.approx(0.5j)
        high = run("eval", "exp(1j*w)", "w=2", "--order", "7", "--json").json["derivatives"][",".join("w" * 7)]
        assert number(high) == pytest.approx(1j**7 * cmath.exp(2j))

    def test_a_holomorphic_program(self, run):
        found = run("eval", "sin(z)*exp(w*z)", "z=1+2j", "w=0.5-1j", "--order", "3", "--json").json
        z, w = 1 + 2j, 0.5 - 1j
        assert number(found["grad"]["z"]) == pytest.approx((cmath.cos(z) + w * cmath.sin(z)) * cmath.exp(w * z))
        assert number(found["derivatives"]["w,w,w"]) == pytest.approx(z**3 * cmath.sin(z) * cmath.exp(w * z))
        mixed = cmath.exp(w * z) * (z * cmath.cos(z) + (1 + w * z) * cmath.sin(z))
        assert number(found["derivatives"]["z,w"]) == pytest.approx(mixed)

    def test_jacobians(self, run):
        found = run("eval", "[z**2, z*w, 1j*x]", "z=1+2j", "w=1j", "x=[1,2]", "--jacobian")
        assert found.status != 0  # the list has items of two shapes
        found = run("eval", "z**2*x", "z=1+2j", "x=[1,2]", "--jacobian", "--json").json["jacobian"]
        np.testing.assert_allclose(number(found["z"]), [2 + 4j, 4 + 8j])
        np.testing.assert_allclose(number(found["x"]), np.diag([-3 + 4j] * 2))

    @pytest.mark.parametrize(
        ("program", "derivative"),
        [("real(z) + 1j*imag(z)", 1), ("conj(exp(conj(z)))", cmath.exp(1 + 2j)), ("-imag(z) + 1j*real(z)", 1j)],
    )
    def test_a_holomorphic_program_of_operations_that_are_not(self, run, program, derivative):
        found = run("eval", program, "z=1+2j", "--json").json["grad"]["z"]
        assert number(found) == pytest.approx(derivative)

    @pytest.mark.parametrize(
        "program", ["conj(z)", "z*conj(z)*1j", "abs(z) + 1j", "z + conj(z)*1j", "complex(abs(z), 1)"]
    )
    def test_a_program_that_is_not_holomorphic(self, run, program):
        done = run("eval", program, "z=1+2j")
        assert done.status == 1
        assert "is not holomorphic" in done.err
        assert "hint: --wirtinger gives the derivatives by z and by conj(z)" in done.err
        assert run("eval", program, "z=1+2j", "--wirtinger").status == 0

    @pytest.mark.parametrize(
        ("program", "by", "by_conjugate"),
        [
            ("conj(z)*z", 1 - 2j, 1 + 2j), ("z**2", 2 + 4j, 0), ("conj(z)**2", 0, 2 - 4j), ("real(z)", 0.5, 0.5),
            ("1j*imag(z)", 0.5, -0.5), ("abs(z)**2", 1 - 2j, 1 + 2j),
        ],
    )  # fmt: skip
    def test_wirtinger(self, run, program, by, by_conjugate):
        found = run("eval", program, "z=1+2j", "--wirtinger", "--json").json["wirtinger"]["z"]
        assert number(found["by"]) == pytest.approx(by)
        assert number(found["by_conjugate"]) == pytest.approx(by_conjugate)

    @pytest.mark.parametrize(
        "program",
        [
            "dot([z, 1], [z, 2])", "prod([z, z])", "det([[z, 1], [1, z]])", "inv([[z, 1], [0, z]])[0, 1]", "sigmoid(z)",
            "where(real(z) > 0, z**2, -z)", "gamma(z)", "erf(z)", "cumprod([z, z])[1]", "reciprocal(z)", "fft([z, 1j])[1]",
            "vdot([z, 1], [z, 2])", "norm([z, 1])*1j", "var([z, 2*z]) + 0j", "z.H*z", "angle(z) + 1j",
        ],
    )  # fmt: skip
    def test_a_derivative_that_is_given_is_that_of_differences(self, run, program):
        def value(z):
            found = run("eval", program, f"z={z.real!r}{z.imag:+}j", "--no-grad", "--json").json["value"]
            return complex(number(found))

        found = run("eval", program, "z=1.3+0.7j", "--json")
        by_a = (value(1.3001 + 0.7j) - value(1.2999 + 0.7j)) / 2e-4
        by_b = (value(1.3 + 0.7001j) - value(1.3 + 0.6999j)) / 2e-4
        if found.status == 0:
            assert number(found.json["grad"]["z"]) == pytest.approx(by_a, rel=1e-6)
            assert by_b == pytest.approx(1j * by_a, rel=1e-6)
        else:
            assert "holomorphic" in found.err
            assert abs(by_b - 1j * by_a) > 0.1

    def test_wirtinger_in_a_table(self, run):
        assert "z        1.0-2.0j\nconj(z)  1.0+2.0j\n" in run("eval", "conj(z)*z", "z=1+2j", "--wirtinger").out
        assert "none is complex" in run("eval", "x**2", "x=1", "--wirtinger").err

    def test_exact_zeros_of_wirtinger_derivatives(self, run):
        # By the conjugate of an input in which the program is holomorphic, and the other way round.
        found = run(
            "eval", "w = sigmoid(z); exp(w)*conj(u)", "z=1+2j", "u=0.3j", "--wirtinger", "--certify", "--json"
        ).json
        assert number(found["wirtinger"]["z"]["by_conjugate"]) == 0
        assert number(found["wirtinger"]["u"]["by"]) == 0
        assert min(min(pair.values()) for pair in found["certified"]["wirtinger"].values()) >= 14
        assert "warnings" not in found


class TestSecondDerivativesByComplexInputs:
    def test_a_real_value_has_those_by_both_parts(self, run):
        done = run("eval", "abs(z)**2*x", "z=1+2j", "x=3", "--order", "2", "--precision", "6")
        assert done.out.split("\n\n")[2] == (
            "by               derivative\nreal(z),real(z)  6\nreal(z),imag(z)  0\nreal(z),x        2\n"
            "imag(z),imag(z)  6\nimag(z),x        4\nx,x              0\n"
        )

    def test_they_are_those_by_real_inputs(self, run):
        program = "sum(real(exp({z})*w)*abs(w)**3) + imag({z}/x)"
        found = run("eval", program.format(z="z"), "z=0.3-0.8j", "w=[1j, 0.5]", "x=2", "--order", "3", "--json").json
        by_parts = run(
            "eval",
            f"z = complex(a, b); w = complex(c, d); {program.format(z='z')}",
            *("a=0.3", "b=-0.8", "c=[0, 0.5]", "d=[1, 0]", "x=2", "--order", "3", "--json"),
        ).json
        names = {"a": "real(z)", "b": "imag(z)", "c": "real(w)", "d": "imag(w)", "x": "x"}
        for key, derivative in by_parts["derivatives"].items():
            own = found["derivatives"][",".join(names[name] for name in key.split(","))]
            np.testing.assert_allclose(own, derivative, rtol=1e-9, atol=1e-12, err_msg=key)
        assert len(found["derivatives"]) == len(by_parts["derivatives"])

    def test_they_have_digits_and_bounds(self, run):
        words = ("eval", "abs(z)**4", "z=1+2j", "--order", "2", "--json")
        exact = {"real(z),real(z)": 28, "real(z),imag(z)": 16, "imag(z),imag(z)": 52}
        for options in ((), ("--digits", "20"), ("--certify",)):
            found = run(*words, *options).json["derivatives"]
            assert {key: float(text) for key, text in found.items()} == pytest.approx(exact)
        bounds = run(*words[:2], "z=(1±0.01)+(2±0.01)j", *words[3:], "--enclose").json["derivatives"]
        assert all(float(bounds[key][0]) < number < float(bounds[key][1]) for key, number in exact.items())

    def test_of_any_order_by_conjugates(self, run):
        found = run("eval", "z**2*conj(z)**3*x", "z=1+2j", "x=0.5", "--wirtinger", "--order", "4", "--json").json
        z = 1 + 2j
        for key, derivative in found["derivatives"].items():
            by = key.split(",")
            n, m, k = by.count("z"), by.count("conj(z)"), by.count("x")
            power = [math.perm(2, n), math.perm(3, m), (0.5, 1.0, 0.0)[min(k, 2)]]
            wanted = math.prod(power) * z ** max(2 - n, 0) * z.conjugate() ** max(3 - m, 0)
            np.testing.assert_allclose(number(derivative), wanted, rtol=1e-9, atol=1e-9, err_msg=key)
        assert len(found["derivatives"]) == math.comb(7, 4) - 4

    def test_the_hessian_of_arrays_by_conjugates(self, run):
        found = run("eval", "real(vdot(v, A@v))", "v=[1j, 2]", "A=[[1, 2j], [-2j, 3]]", "--wrt", "v", "--wirtinger")
        assert found.status == 0
        words = (
            "eval",
            "real(vdot(v, A@v))",
            "v=[1j, 2]",
            "A=[[1, 2j], [3j, 3]]",
            "--wirtinger",
            "--order",
            "2",
            "--json",
        )
        derivatives = run(*words).json["derivatives"]
        a = np.array([[1, 2j], [3j, 3]])
        # L = (v'av + v'a'v)/2, with the conjugate transposes v' and a'.
        np.testing.assert_allclose(number(derivatives["v,conj(v)"]), ((a + a.conj().T) / 2).T, atol=1e-12)
        np.testing.assert_allclose(number(derivatives["v,v"]), np.zeros((2, 2)), atol=1e-12)
        np.testing.assert_allclose(number(derivatives["conj(v),A"])[0, 0], [0.5j, 1], atol=1e-12)

    def test_the_square_of_a_modulus(self, run):
        """The modulus is no rational number, and has no derivatives at 0; its square is, and has."""
        for point, value in (("1+2j", "5"), ("0j", "0")):
            words = ("eval", "abs(z)**2", f"z={point}", "--order", "2", "--json")
            exact, floats = run(*words, "--digits", "20").json, run(*words, "--certify").json
            assert exact["value"] == value
            assert [*exact["derivatives"].values()] == ["2", "0", "2"]
            assert [*floats["derivatives"].values()] == [2.0, 0.0, 2.0]
            assert [*floats["certified"]["derivatives"].values()] == [16, 16, 16]
        assert run("eval", "sum(np.abs(v)**2)", "v=[0j, 3+4j]", "--no-grad").out == "value  25.0\n"
        assert run("eval", "abs(x)**2", "x=-3", "--nodes", "--json").json["rewrites"] == []

    def test_laplace(self, run):
        # By z and its conjugate, a quarter of the Laplacian: 0 of a harmonic function.
        found = run("eval", "log(abs(z)**2)", "z=1+2j", "--wirtinger", "--order", "2", "--json").json["derivatives"]
        assert number(found["z,conj(z)"]) == pytest.approx(0, abs=1e-15)
        assert number(found["z,z"]) == pytest.approx(-1 / (1 + 2j) ** 2)

    def test_what_is_refused(self, run):
        assert "is not holomorphic" in run("eval", "z*conj(z)*1j", "z=1+2j", "--order", "2").err
        sparse = run("eval", "sum(abs(z)**2)", "z=[1+2j, 2]", "--order", "2", "--sparse")
        assert "coordinates are of derivatives by real inputs, and 'z' is complex" in sparse.err
        assert (
            "--wirtinger is for derivatives that are not sparse"
            in run("eval", "abs(z)", "z=1j", "--order", "2", "--sparse", "--wirtinger").err
        )
        assert (
            "--wirtinger is for derivatives without --grad-output"
            in run("eval", "[z]", "z=1j", "--grad-output", "[1]", "--wirtinger").err
        )

    def test_rows_have_no_columns_for_them(self, run, tmp_path):
        (tmp_path / "a.csv").write_text("z\n(1+2j)\n")
        done = run("map", "abs(z)", f"{tmp_path}/a.csv", "--order", "2")
        assert "has no second derivative by the complex 'z'" in done.err
        assert "hint: write complex(a, b) in place of z; gradcli eval has the derivatives by real(z)" in done.err


class TestCheck:
    @pytest.mark.parametrize("program", ["exp(1j*w*z)", "abs(z)**2*w", "conj(z)*[w, z]", "sum(real(z)*w)"])
    def test_both_directions_are_compared(self, run, program):
        found = run("check", program, "w=2", "z=1+2j", "--json").json
        assert found["agrees"]
        assert {row["leaf"] for row in found["checks"]} == {"w", "real(z)", "imag(z)"}

    def test_orders(self, run):
        found = run("check", "z**3", "z=1+2j", "--order", "3", "--json").json
        assert (found["agrees"], len(found["checks"])) == (True, 6)

    def test_a_wrong_derivative(self, run):
        done = run("check", "f(z) = z**2 backward(g) = 3*g*z; f(z)", "z=1+2j")
        assert done.status == 1
        assert "disagree on the derivative by 'real(z)' and 'imag(z)'" in done.err


class TestMap:
    TABLE = "w,z\n1,(1+2j)\n2,-1j\n3,0.5\n4,\n"

    def test_complex_results_have_two_columns(self, run, tmp_path):
        (tmp_path / "a.csv").write_text(self.TABLE)
        done = run("map", "z*w", f"{tmp_path}/a.csv")
        assert done.out == (
            "w,z,value_re,value_im,d_z_re,d_z_im,d_w_re,d_w_im\n"
            "1,(1+2j),1.0,2.0,1.0,0.0,1.0,2.0\n"
            "2,-1j,0.0,-2.0,2.0,0.0,0.0,-1.0\n"
            "3,0.5,1.5,0.0,3.0,0.0,0.5,0.0\n"
            "4,,,,,,,\n"
        )

    def test_a_real_result_of_complex_inputs(self, run, tmp_path):
        (tmp_path / "a.csv").write_text(self.TABLE)
        done = run("map", "real(z*conj(z)) + w", f"{tmp_path}/a.csv", "--wrt", "z", "--only")
        assert done.out.splitlines()[0] == "value,d_z_re,d_z_im"
        assert done.out.splitlines()[1:3] == ["6.0,2.0,4.0", "3.0,0.0,-2.0"]

    def test_json_lines(self, run, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"z": {"re": 1, "im": 2}}\n{"z": 3}\n')
        lines = run("map", "[z, 1j]", f"{tmp_path}/a.jsonl", "--only").out.splitlines()
        assert [json.loads(line)["value_im"] for line in lines] == [[2.0, 1.0], [0.0, 1.0]]

    def test_structs_of_parquet(self, run, tmp_path):
        polars.DataFrame({"z": [{"re": 1.0, "im": 2.0}, None]}).write_parquet(tmp_path / "a.parquet")
        run("map", "z**2", f"{tmp_path}/a.parquet", "--only", "--output", f"{tmp_path}/b.parquet")
        found = polars.read_parquet(tmp_path / "b.parquet")
        assert found["value_re"].to_list() == [-3.0, None]
        assert found["d_z_im"].to_list() == [4.0, None]

    def test_many_rows_are_those_of_single_ones(self, run, tmp_path):
        (tmp_path / "a.csv").write_text("w\n" + "".join(f"{w}\n" for w in range(1, 3001)))
        lines = run("map", "1/(1 + 0.01j*w)", f"{tmp_path}/a.csv", "--only", "--order", "2").out.splitlines()
        value = np.array([line.split(",") for line in lines[1:]], float)
        w = np.arange(1, 3001)
        h = 1 / (1 + 0.01j * w)
        np.testing.assert_allclose(value[:, 0] + 1j * value[:, 1], h, rtol=1e-14)
        np.testing.assert_allclose(value[:, 2] + 1j * value[:, 3], -0.01j * h**2, rtol=1e-13)
        np.testing.assert_allclose(value[:, 4] + 1j * value[:, 5], -2e-4 * h**3, rtol=1e-13)

    def test_a_program_that_is_not_holomorphic(self, run, tmp_path):
        (tmp_path / "a.csv").write_text(self.TABLE)
        assert "holomorphic" in run("map", "conj(z)", f"{tmp_path}/a.csv").err
        assert run("map", "conj(z)", f"{tmp_path}/a.csv", "--const", "z").status == 0


class TestFormulas:
    @pytest.mark.parametrize(
        ("words", "formula"),
        [
            (("exp(1j*w)",), "1j*exp(1j*w)"), (("1/(1 + 1j*w*R*C)", "--wrt", "w"), "-1j*R*C/(1j*w*R*C + 1)**2"),
            (("z**3", "z=1+2j"), "3*z**2\n# -9.0+12.0j at z=1.0+2.0j"), (("exp(1j*w)", "--order", "4"), "exp(1j*w)"),
            (("a*exp(2i*w)", "a=1j", "--wrt", "w"), "-2*exp(2*1j*w)"), (("exp(1j*w)", "--to", "latex"), r"\mathrm{i} e^{\mathrm{i} w}"),
            (("sqrt(1 + 2j*w)",), "1j/sqrt(2*1j*w + 1)"), (("(3 + 4j)*w + abs(w)",), "4*1j + sign(w) + 3"),
        ],
    )  # fmt: skip
    def test_text(self, run, words, formula):
        assert run("diff", *words).out == f"{formula}\n"

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("sum(abs([1j*w, 2*w]))",), "those of numbers, and this is one of tensors"),
            (("sqrt(x + 0j)", "x=-2"), "no formula of these complex numbers that is known to hold"),
            (("sqrt(1 + (1j*w)**2)",), "no formula of these complex numbers that is known to hold"),
            (("(-2 + 0j)**z", "z=1j"), "no formula of these complex numbers that is known to hold"),
            (("conj(z)*z", "z=1+2j"), "holomorphic"), (("z**2", "z=1+2j", "--to", "sql"), "cannot be written as sql"),
            (("exp(1j*w)", "--to", "sql"), "complex numbers cannot be written as sql"),
            (("exp(1j*w)", "--to", "polars"), "complex numbers cannot be written as polars"),
        ],
    )  # fmt: skip
    def test_what_has_no_formula(self, run, words, message):
        done = run("diff", *words)
        assert done.status != 0
        assert message in done.err

    def known(self, run):
        found = run("eval", "a*exp(1j*w)/(z + 1)**2", "a=2", "w=0.7", "z=1+2j", "--wrt", "w,z", "--json").json
        return [complex(number(n)) for n in (found["value"], found["grad"]["w"], found["grad"]["z"])]

    def test_code_of_real_numbers_is_not_written_for_complex_ones(self, run):
        for program in ("sinpi(1j*x)", "fresnels(1j*x)", "softplus(x + 1j)", "sigmoid(1j*x)"):
            assert "cannot be written as" in run("diff", program, "--to", "python").err
        assert run("diff", "sinpi(1j*x)").out == "pi*1j*cospi(1j*x)\n"
        names = {}
        exec(run("diff", "1j*sinpi(x)*sinc(1j*x)", "--to", "python").out, names)
        expected = 1j * math.sin(0.3 * math.pi) * math.sinh(0.3 * math.pi) / (0.3 * math.pi)
        assert names["value"](0.3) == pytest.approx(expected)

    def test_python(self, run):
        names: dict = {}
        exec(run("diff", "a*exp(1j*w)/(z + 1)**2", "z=1+2j", "--wrt", "w,z", "--to", "python").out, names)
        assert names["value_and_derivatives"](a=2.0, w=0.7, z=1 + 2j) == pytest.approx(self.known(run))

    def test_c(self, run, tmp_path):
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        code = run("diff", "a*exp(1j*w)/(z + 1)**2", "z=1+2j", "--wrt", "w,z", "--to", "c").out
        (tmp_path / "f.c").write_text(
            f"#include <stdio.h>\n{code}"
            + """
            int main(void) {
                double complex r[3];
                value_and_derivatives(2.0, 0.7, 1 + 2*I, r);
                for (int i = 0; i < 3; i++) printf("%.17g %.17g\\n", creal(r[i]), cimag(r[i]));
                return 0;
            }"""
        )
        subprocess.run([compiler, "-o", "f", "f.c", "-lm"], cwd=tmp_path, check=True)
        lines = subprocess.run(["./f"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
        assert [complex(*map(float, line.split())) for line in lines] == pytest.approx(self.known(run))


class TestFunctionsOfRealNumbers:
    @pytest.mark.parametrize(
        "program",
        [
            "integrate(lambda t: t, 0, z)",
            "brentq(lambda x: x, -1, z)",
            "arange(z)",
            "quantile([1, 2], z)",
        ],
    )
    def test_a_complex_argument_is_an_error(self, run, program):
        done = run("eval", program, "z=1+2j")
        assert done.status == 1
        assert f"'{program.partition('(')[0]}' takes real numbers, and not complex ones" in done.err

    @pytest.mark.parametrize(
        ("program", "value", "gradient"),
        [
            ("integrate(lambda t: real(exp(1j*w*t)), 0, 1)", math.sin(2) / 2, {"w": math.cos(2) / 2 - math.sin(2) / 4}),
            ("integrate(lambda t: real(t*z)*w, 0, 1)", 1.0, {"z": 1.0, "w": 0.5}),
            ("integrate(lambda t: abs(w*t*1j - z)**2, 0, 3)", 15.0, {"z": 6 - 6j, "w": 18.0}),
            ("root(lambda x: w*x - abs(z), 1)", 5**0.5 / 2, {"z": (1 + 2j) / 20**0.5, "w": -(5**0.5) / 4}),
            ("nsum(lambda n: w*real((z/3)**n), 0, inf)", 1.5, {"z": -0.75j, "w": 0.75}),
        ],
    )
    def test_functions_may_compute_with_complex_numbers(self, run, program, value, gradient):
        given = [f"{name}={number}" for name, number in {"z": "1+2j", "w": 2}.items() if name in gradient]
        found = run("eval", program, *given, "--json").json
        assert found["value"] == pytest.approx(value)
        by = {name: complex(number(d)) for name, d in found["grad"].items()}
        assert by == pytest.approx(gradient, abs=1e-12)


class TestIntegrals:
    """Integrals by a real variable, and sums, of functions with complex values."""

    def test_a_complex_integrand(self, run):
        found = run("eval", "integrate(lambda t: exp(1j*w*t), 0, x)", "w=2", "x=1.5", "--json").json
        w, x = 2.0, 1.5
        assert number(found["value"]) == pytest.approx((cmath.exp(1j * w * x) - 1) / (1j * w))
        assert number(found["grad"]["x"]) == pytest.approx(cmath.exp(1j * w * x))
        by_w = x * cmath.exp(1j * w * x) / w - (cmath.exp(1j * w * x) - 1) / (1j * w**2)
        assert number(found["grad"]["w"]) == pytest.approx(by_w)

    @pytest.mark.cases(1)
    @pytest.mark.parametrize(
        ("program", "reference"),
        [
            ("integrate(lambda t: exp(z*t), 0, 1)", lambda z: (mpmath.exp(z) - 1) / z),
            ("integrate(lambda t: t**z/sqrt(t), 0, 1)", lambda z: 1 / (z + 0.5)),
            ("integrate(lambda t: exp(-z*t)/(1 + t), 0, inf)", lambda z: mpmath.exp(z) * mpmath.e1(z)),
            ("w = z**2; integrate(lambda t: w/(t + w), 0, 2)*z", lambda z: z**3 * (mpmath.log(2 + z**2) - mpmath.log(z**2))),
            ("nsum(lambda n: (z/3)**n, 0, inf)", lambda z: 3 / (3 - z)),
            ("w = conj(z); conj(integrate(lambda t: exp(w*t), 0, 1))", lambda z: (mpmath.exp(z) - 1) / z),
        ],
    )  # fmt: skip
    def test_derivatives_by_a_complex_parameter(self, run, program, reference):
        z = 1 + 2j
        found = run("eval", program, "z=1+2j", "--order", "2", "--json").json
        expected = [complex(mpmath.diff(reference, mpmath.mpc(z), order)) for order in range(3)]
        numbers = [found["value"], found["grad"]["z"], found["derivatives"]["z,z"]]
        assert [*map(number, numbers)] == pytest.approx(expected, rel=1e-10)

    @pytest.mark.cases(1)
    @pytest.mark.parametrize(
        "program",
        [
            "integrate(lambda t: exp(z*t)*conj(z), 0, 1)", "integrate(lambda t: exp(1j*t), 0, real(z))",
            "a = abs(z); integrate(lambda t: exp(1j*t*a), 0, 1)", "integrate(lambda t: exp(z*t), 0, 1)*real(z)",
            "integrate(lambda t: exp(z*t) if t > real(z) else t*1j, 0, 2)",
        ],
    )  # fmt: skip
    def test_what_is_not_holomorphic_has_both_derivatives(self, run, program):
        assert "not holomorphic" in run("eval", program, "z=1+2j").err
        found = run("eval", program, "z=1+2j", "--wirtinger", "--json").json["wirtinger"]["z"]
        step = 1e-5

        def value(z):
            return complex(
                number(run("eval", program, f"z={z.real!r}{z.imag:+}j", "--no-grad", "--json").json["value"])
            )

        by_a, by_b = ((value(1 + 2j + d) - value(1 + 2j - d)) / (2 * step) for d in (step, 1j * step))
        assert number(found["by"]) == pytest.approx((by_a - 1j * by_b) / 2, rel=1e-4, abs=1e-6)
        assert number(found["by_conjugate"]) == pytest.approx((by_a + 1j * by_b) / 2, rel=1e-4, abs=1e-6)

    def test_the_gradient_of_a_real_value(self, run):
        found = run("eval", "abs(integrate(lambda t: exp(z*t), 0, 1))**2", "z=1+2j", "--json").json
        value, slope = (cmath.exp(1 + 2j) - 1) / (1 + 2j), 0
        slope = cmath.exp(1 + 2j) / (1 + 2j) - (cmath.exp(1 + 2j) - 1) / (1 + 2j) ** 2
        assert found["value"] == pytest.approx(abs(value) ** 2)
        assert number(found["grad"]["z"]) == pytest.approx(2 * value * slope.conjugate())

    def test_branches_tensors_and_the_error(self, run):
        assert run("eval", "integrate(lambda t: 1j*t if t > 0 else 3, -1, 1)", "--no-grad").out == "value  3.0+0.5j\n"
        found = run("eval", "integrate(lambda t: [t*w, 1j*t], 0, 2)", "w=1j", "--jacobian", "--json").json
        assert list(number(found["value"])) == [2j, 2j]
        assert list(number(found["jacobian"]["w"])) == [2, 0]
        error = run("eval", "quad(lambda t: exp(1j*t), 0, 1)[1]", "--no-grad", "--json").json["value"]
        assert 0 < error < 1e-12


class TestPython:
    def test_values_are_complex_numbers_and_arrays(self):
        program = gradcli.compile("z**2*x")
        assert program(z=1 + 2j, x=2.0) == pytest.approx(-6 + 8j)
        found = program(z=np.array([1 + 2j, 1j], "complex64"), x=2.0)
        np.testing.assert_allclose(found, [-6 + 8j, -2])

    def test_derivatives(self):
        real = gradcli.compile("abs(z)**2*x")
        value, gradient = real.value_and_grad({"z": 1 + 2j, "x": 2.0})
        assert (value, gradient["z"], gradient["x"]) == pytest.approx((10, 4 + 8j, 5))
        program = gradcli.compile("exp(1j*w)*z")
        jacobian = program.jacobian({"w": 2.0, "z": 2j})
        assert jacobian["z"] == pytest.approx(cmath.exp(2j))
        assert jacobian["w"] == pytest.approx(-2 * cmath.exp(2j))
        found = gradcli.compile("exp(1j*w)").derivatives({"w": 2.0}, 3)
        assert found[3] == pytest.approx(-1j * cmath.exp(2j))
        with pytest.raises(gradcli.errors.DifferentiationError, match="real scalar outputs"):
            program.value_and_grad({"w": 2.0, "z": 2j})
        with pytest.raises(gradcli.errors.DifferentiationError, match="holomorphic"):
            gradcli.compile("conj(z)").jacobian({"z": 2j})

    def test_higher_derivatives_by_complex_inputs(self):
        program = gradcli.compile("z**3*w")
        assert program.derivatives({"z": 1 + 2j, "w": 1.0}, 2, wrt=["z"]) == pytest.approx(
            [-11 - 2j, -9 + 12j, 6 + 12j]
        )
        assert program.hessian({"z": 1 + 2j, "w": 1.0}) == pytest.approx({"z,z": 6 + 12j, "z,w": -9 + 12j, "w,w": 0})

    def test_higher_derivatives_of_a_complex_value_by_several_real_inputs(self):
        program, values = gradcli.compile("1j*w**2*exp(c)"), {"w": 2.0, "c": 0.0}
        assert program.hessian(values) == pytest.approx({"w,w": 2j, "w,c": 4j, "c,c": 4j})
        assert program.derivatives(values, 3)["w,c,c"] == pytest.approx(4j)

    def test_second_derivatives_of_a_real_value_are_by_parts(self):
        program, values = gradcli.compile("abs(z)**2*x"), {"z": 1 + 2j, "x": 3.0}
        wanted = {
            "real(z),real(z)": 6, "real(z),imag(z)": 0, "real(z),x": 2, "imag(z),imag(z)": 6, "imag(z),x": 4, "x,x": 0,
        }  # fmt: skip
        assert program.hessian(values) == pytest.approx(wanted)
        assert program.derivatives(values, 2) == pytest.approx({"z": 6 + 12j, "x": 5, **wanted})
        assert program.certify(values, order=2).digits["derivatives"]["imag(z),x"] >= 15
        assert program.derivatives(values, 1, ["z"]) == pytest.approx([15, 6 + 12j])

    def test_higher_derivatives_that_do_not_exist(self):
        for of in (lambda p, v: p.derivatives(v, 2), lambda p, v: p.hessian(v)):
            with pytest.raises(gradcli.errors.DifferentiationError, match="holomorphic"):
                of(gradcli.compile("conj(z)"), {"z": 1 + 2j})
        for program in ("conj(z)", "imag(z)"):
            with pytest.raises(gradcli.errors.DifferentiationError, match="by real inputs, and one is complex"):
                gradcli.compile(program).hessian({"z": 1 + 2j}, sparse=True)

    def test_a_table_of_complex_columns(self):
        columns = {"z": np.array([1 + 2j, 2j]), "w": np.array([1.0, 2.0])}
        for table in (columns, {**columns, "z": np.array([1 + 2j, 2j], object)}):
            found = gradcli.compile("z*w").map(table, order=1)
            np.testing.assert_allclose(found["value"], [1 + 2j, 4j])
            np.testing.assert_allclose(found["d_w"], [1 + 2j, 2j])


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("(complex(a, b) - 50)/(complex(a, b) + 50)", (-47 + 2j) / (53 + 2j)),
        ("(polar(a, a) - 2)/(polar(a, a) + 2)", (cmath.rect(3, 3) - 2) / (cmath.rect(3, 3) + 2)),
    ],
)
def test_quotients_of_numbers_that_are_made_of_parts(run, program, value):
    """Such a quotient was examined for removable singularities as a real function, which was an internal error."""
    given = ["a=3", "b=2"] if "b" in program else ["a=3"]
    assert run("eval", f"real({program})", *given, "--json").json["value"] == pytest.approx(value.real)


class TestRounding:
    """Lost digits of complex numbers are told, as those of real ones are."""

    @pytest.mark.parametrize(
        ("program", "words", "told"),
        [
            ("exp(1j*x) - exp(1j*x*(1 + d))", "x=0.3 d=1e-12", "the value has about 3 right digits"),
            ("tan(z) - sin(z)", "z=1e-9+1e-9j", "the value cannot be distinguished from 0"),
            ("abs(z + 1) - 1", "z=1e-9+1e-9j", "the value has about 6 right digits"),
            ("sqrt(z**4)/z**2", "z=1e-9+1e-9j", "the derivative by z has no right digit"),
        ],
    )
    def test_they_are_told(self, run, program, words, told):
        assert told in run("eval", program, *words.split()).err

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("z**2 + 1", "z=1j"), ("exp(z) - 1", "z=1e-12+1e-12j"), ("1/(1 + 1j*w*R*C)", "w=1000 R=2000 C=1e-6"),
            ("z/z", "z=0.3-0.7j"), ("real(x/2j)", "x=0.3"), ("real(conj(z)*z) - 5", "z=1+2j"), ("z**2 - 2j*x", "z=1.1+1.1j x=1.21"),
        ],
    )  # fmt: skip
    def test_there_is_no_word_where_they_are_right(self, run, program, words):
        assert run("eval", program, *words.split(), "--wrt", words[0]).err == ""


class TestWhereRealNumbersAreNeeded:
    """Each error says what to write."""

    @pytest.mark.parametrize(
        ("words", "message", "hint"),
        [
            (["eval", "z", "z=1+i"], "unknown name 'i'", "write 1j for the imaginary unit"),
            (["solve", "z**2 + 1 = 0", "z=1j"], "there is no unknown", "write z~0.0+1.0j to start there"),
            (["sample", "-abs(z)**2", "z=1j"], "'z' is complex", "write complex(a, b) in place of z"),
            (["graph", "z**2", "z=1j", "--values"], "this one is complex", "--no-grad shows values alone"),
        ],
    )
    def test_an_error_says_what_to_write(self, run, words, message, hint):
        done = run(*words)
        assert done.status in (1, 2)
        assert message in done.err
        assert hint in done.err


def test_removable_points_have_proved_digits(run):
    done = run("eval", "(exp(z) - 1)/z", "z=0j", "--digits", "20", "--order", "2", "--json").json
    assert number(done["value"]) == 1
    assert number(done["derivatives"]["z,z"]) == pytest.approx(1 / 3)
    assert "nan" in run("eval", "sqrt(z**4)/z**2", "z=0j", "--digits", "20").out
