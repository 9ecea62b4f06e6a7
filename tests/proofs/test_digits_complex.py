"""Tests proved digits of complex numbers: `--digits`, `--certify` and `--enclose` of programs that have them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpc, mpf

import gradcli
from gradcli.errors import EvaluationError

DIGITS = 40

# Programs of z, and the same functions in mpmath, holomorphic where the points are.
FUNCTIONS: dict[str, Any] = {
    "exp(z)": mpmath.exp,
    "exp2(z)": lambda z: mpf(2) ** z,
    "expm1(z)": mpmath.expm1,
    "log(z)": mpmath.log,
    "log2(z)": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10(z)": mpmath.log10,
    "log1p(z)": lambda z: mpmath.log(1 + z),
    "sqrt(z)": mpmath.sqrt,
    "rsqrt(z)": lambda z: 1 / mpmath.sqrt(z),
    "1/z": lambda z: 1 / z,
    "z**7": lambda z: z**7,
    "z**-3": lambda z: z**-3,
    "z**0.3": lambda z: z ** (mpf(3) / 10),
    "z**(1+2j)": lambda z: z ** mpc(1, 2),
    "2**z": lambda z: mpf(2) ** z,
    "z**z": lambda z: z**z,
    "sin(z)": mpmath.sin,
    "cos(z)": mpmath.cos,
    "tan(z)": mpmath.tan,
    "asin(z)": mpmath.asin,
    "acos(z)": mpmath.acos,
    "atan(z)": mpmath.atan,
    "sinh(z)": mpmath.sinh,
    "cosh(z)": mpmath.cosh,
    "tanh(z)": mpmath.tanh,
    "asinh(z)": mpmath.asinh,
    "acosh(z)": mpmath.acosh,
    "atanh(z)": mpmath.atanh,
    "sech(z)": mpmath.sech,
    "csch(z)": mpmath.csch,
    "coth(z)": mpmath.coth,
    "acot(z)": lambda z: mpmath.atan(1 / z),
    "asec(z)": lambda z: mpmath.acos(1 / z),
    "acsc(z)": lambda z: mpmath.asin(1 / z),
    "acoth(z)": lambda z: mpmath.atanh(1 / z),
    "asech(z)": lambda z: mpmath.acosh(1 / z),
    "acsch(z)": lambda z: mpmath.asinh(1 / z),
    "sigmoid(z)": lambda z: 1 / (1 + mpmath.exp(-z)),
    "gamma(z)": mpmath.gamma,
    "lgamma(z)": mpmath.loggamma,
    "digamma(z)": mpmath.digamma,
    "polygamma(2, z)": lambda z: mpmath.polygamma(2, z),
    "rgamma(z)": mpmath.rgamma,
    "zeta(z)": mpmath.zeta,
    "zeta(z, n=2)": lambda z: mpmath.zeta(z, 1, 2),
    "erf(z)": mpmath.erf,
    "erfc(z)": mpmath.erfc,
    "erfi(z)": mpmath.erfi,
    "exp1(z)": mpmath.e1,
    "expi(z)": mpmath.ei,
    "lambertw(z)": mpmath.lambertw,
    "lambertw(z, -1)": lambda z: mpmath.lambertw(z, -1),
    "airyai(z)": mpmath.airyai,
    "airybi(z)": mpmath.airybi,
    "j0(z)": lambda z: mpmath.besselj(0, z),
    "j1(z)": lambda z: mpmath.besselj(1, z),
    "y0(z)": lambda z: mpmath.bessely(0, z),
    "y1(z)": lambda z: mpmath.bessely(1, z),
    "i0(z)": lambda z: mpmath.besseli(0, z),
    "i1(z)": lambda z: mpmath.besseli(1, z),
    "k0(z)": lambda z: mpmath.besselk(0, z),
    "k1(z)": lambda z: mpmath.besselk(1, z),
    "jv(0.3, z)": lambda z: mpmath.besselj(mpf(3) / 10, z),
    "yv(0.3, z)": lambda z: mpmath.bessely(mpf(3) / 10, z),
    "iv(0.3, z)": lambda z: mpmath.besseli(mpf(3) / 10, z),
    "kv(0.3, z)": lambda z: mpmath.besselk(mpf(3) / 10, z),
    "hyp0f1(1.5, z)": lambda z: mpmath.hyp0f1(1.5, z),
    "hyp1f1(0.5, 1.5, z)": lambda z: mpmath.hyp1f1(0.5, 1.5, z),
    "hyp2f1(0.5, 1.5, 2.5, z)": lambda z: mpmath.hyp2f1(0.5, 1.5, 2.5, z),
    "softplus(z)": lambda z: mpmath.log(1 + mpmath.exp(z)),
    "logsigmoid(z)": lambda z: -mpmath.log(1 + mpmath.exp(-z)),
    "logaddexp(z, 2j*z)": lambda z: mpmath.log(mpmath.exp(z) + mpmath.exp(2j * z)),
    "xlogy(z, z)": lambda z: z * mpmath.log(z),
    "xlog1py(z, z)": lambda z: z * mpmath.log(1 + z),
    "sinpi(z)": mpmath.sinpi,
    "cospi(z)": mpmath.cospi,
    "sinc(z)": mpmath.sincpi,
    "tanhshrink(z)": lambda z: z - mpmath.tanh(z),
    "dawsn(z)": lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
    "fresnels(z)": mpmath.fresnels,
    "fresnelc(z)": mpmath.fresnelc,
    "si(z)": mpmath.si,
    "ci(z)": mpmath.ci,
    "shi(z)": mpmath.shi,
    "chi(z)": mpmath.chi,
    "kve(0.3, z)": lambda z: mpmath.exp(z) * mpmath.besselk(mpf(3) / 10, z),
    "polyval([1, 2j, 3], z)": lambda z: z**2 + 2j * z + 3,
}
# Derivatives that mpmath takes long to compute by differences.
SLOPES: dict[str, Any] = {
    "y0(z)": lambda z: -mpmath.bessely(1, z),
    "y1(z)": lambda z: mpmath.bessely(0, z) - mpmath.bessely(1, z) / z,
    "k1(z)": lambda z: -mpmath.besselk(0, z) - mpmath.besselk(1, z) / z,
}
POINTS = ("0.7+0.4j", "-1.3+0.2j", "-0.6-1.9j", "2.3-0.1j")


def complex_of(member: Any) -> tuple[str, str]:
    """The texts of both parts of a number in JSON; those of a real one have the imaginary part 0."""
    return (member["re"], member["im"]) if isinstance(member, dict) else (member, "0")


def assert_digits(member: Any, expected: Any, digits: int = DIGITS) -> None:
    """Assert that both parts have `digits` digits, or fewer if they are exact, the last off by at most one unit."""
    expected = mpc(expected)
    for text, part in zip(complex_of(member), (expected.real, expected.imag)):
        number = Decimal(text)
        assert len(number.as_tuple().digits) <= digits
        # Few digits are an exact number.
        unit = mpf(10) ** (number.adjusted() - digits + 1)
        assert abs(mpf(text) - part) <= unit * (1 + mpf(10) ** -5), (text, mpmath.nstr(part, digits + 5))


def element(member: Any, *place: int) -> Any:
    """An element of an array in JSON, in which both parts are arrays."""
    if isinstance(member, dict):
        return {part: element(numbers, *place) for part, numbers in member.items()}
    for i in place:
        member = member[i]
    return member


def as_complex(proved: Any) -> complex:
    """A number of the Python interface as floats."""
    return complex(float(proved.real), float(proved.imag)) if isinstance(proved, tuple) else complex(proved)


def number(text: str) -> Any:
    """A complex number from its decimals."""
    real, imag = text[:-1].replace("-", " -").replace("+", " ").split()
    return mpc(real, imag)


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mpmath.workdps(DIGITS + 10):
        yield


class TestFunctions:
    @pytest.mark.parametrize("program", FUNCTIONS)
    def test_values_and_derivatives_beside_mpmath(self, run, program):
        words = [f"z=[{','.join(POINTS)}]", "--jacobian", "--digits", str(DIGITS), "--json"]
        found, function = run("eval", program, *words).json, FUNCTIONS[program]
        for i, point in enumerate(POINTS):
            assert_digits(element(found["value"], i), function(number(point)))
        with mpmath.workdps(2 * DIGITS):
            # The error of the central difference is about h**2.
            z, known = number(POINTS[0]), SLOPES.get(program)
            slope = known(z) if known else mpmath.diff(function, z, h=mpf(10) ** (-0.6 * DIGITS))
        assert_digits(element(found["jacobian"]["z"], 0, 0), slope)


# Programs with branch cuts, and points on the cuts. The sign of the zero part chooses the side.
CUTS = {
    "sqrt(z)": ("-2{}0j",),
    "rsqrt(z)": ("-2{}0j",),
    "log(z)": ("-2{}0j",),
    "log2(z)": ("-2{}0j",),
    "log10(z)": ("-2{}0j",),
    "log1p(z)": ("-3{}0j",),
    "z**0.3": ("-2{}0j",),
    "z**(1+2j)": ("-2{}0j",),
    "angle(z)": ("-2{}0j",),
    "asin(z)": ("-2{}0j", "2{}0j"),
    "acos(z)": ("-2{}0j", "2{}0j"),
    "acosh(z)": ("-2{}0j", "0.5{}0j", "-0.5{}0j"),
    "atanh(z)": ("-2{}0j", "2{}0j"),
    "asinh(z)": ("{}0+2j", "{}0-2j"),
    "atan(z)": ("{}0+2j", "{}0-2j"),
    "lgamma(z)": ("-2.5{}0j",),
    "exp1(z)": ("-2.5{}0j",),
}
ABOVE_ALONE = (
    "ci(z)",
    "chi(z)",
    "kve(0.3, z)",
    "y0(z)",
    "k1(z)",
    "jv(0.3, z)",
    "yv(0.3, z)",
    "iv(0.3, z)",
    "kv(0.3, z)",
    "lambertw(z, 1)",
)


def signed(point: str, sign: str) -> complex:
    """A number with a zero part of a sign, which is lost where Python evaluates the text."""
    text = point.format(sign)
    real, imag = (text[:2], text[2:-1]) if point.startswith("{}") else (text[:-3], text[-3:-1])
    return complex(float(real), float(imag))


@pytest.mark.parametrize(
    "program",
    [
        "real(y + 1j)", "imag(y + 1j)", "conj(y + 1j)", "abs(y**2 + 1j)", "conj(real(y + 1j)*y)", "norm([y + 1j, y])",
        "vdot([y + 1j, 1], [1, y + 2j])", "det([[y + 1j, y], [1j, conj(1j + y)]])",
    ],
)  # fmt: skip
def test_series_whose_coefficients_are_real_after_the_first(run, program):
    words = ("eval", program, "y=1.875", "--order", "3", "--json")
    exact, floats = run(*words, "--digits", "20").json, run(*words).json
    for key, found in exact["derivatives"].items():
        for text, near in zip(_parts(found), _parts(floats["derivatives"][key]), strict=True):
            assert float(text) == pytest.approx(float(near), rel=1e-9, abs=1e-12)


def _parts(member: Any) -> list[Any]:
    return [*member.values()] if isinstance(member, dict) else [member]


class TestBranchCuts:
    @pytest.mark.parametrize("sign", "+-")
    @pytest.mark.parametrize("program", CUTS)
    def test_the_sign_of_zero_chooses_the_side_as_in_numpy(self, program, sign):
        for point in CUTS[program]:
            z, compiled = signed(point, sign), gradcli.compile(program)
            found = compiled.evaluate({"z": z}, digits=20, gradient=False).value
            expected = compiled(z=z)
            if program == "angle(z)":
                assert float(found) == pytest.approx(expected, rel=1e-14)
            else:
                near = complex(float(found.real), float(found.imag))
                assert near == pytest.approx(complex(expected), rel=1e-13), (program, z)

    @pytest.mark.parametrize("program", ABOVE_ALONE)
    def test_functions_that_scipy_has_from_above_alone(self, program):
        compiled = gradcli.compile(program)
        found = compiled.evaluate({"z": -2 + 0j}, digits=20, gradient=False).value
        assert complex(float(found.real), float(found.imag)) == pytest.approx(complex(compiled(z=-2 + 0j)), rel=1e-12)

    @pytest.mark.parametrize("program", [p for p in ABOVE_ALONE if not p.startswith("lambertw")])
    def test_below_their_cut_they_have_no_value(self, program):
        with pytest.raises(EvaluationError, match="on a branch cut"):
            gradcli.compile(program).evaluate({"z": complex(-2, -0.0)}, digits=20)

    def test_zeros_of_unknown_sign_are_an_error(self, run):
        found = run("eval", "log(complex(-1, y))", "y=0", "--digits", "20")
        assert found.status == 1
        assert "the sign of its zero imaginary part is not known" in found.err
        assert run("eval", "log(complex(-1, y) + 0j)", "y=0", "--digits", "5", "--bare").out == "0+3.1416j\n"

    def test_what_is_not_told_from_a_cut_is_undecided(self, run):
        words = ["x=2", "--digits", "20", "--max-precision", "200"]
        found = run("eval", "sqrt(-1 + 1j*(exp(x)*exp(-x) - 1))", *words)
        assert found.status == 1
        assert "it cannot be told on which side of a branch cut a number is with 200 digits" in found.err

    def test_a_side_that_needs_more_digits_is_found(self, run):
        found = run("eval", "log(-1 + 1j*(x - 0.1))", "x=0.1000000000000000000000000000000000000001", "--digits", "20")
        assert found.out.startswith("value  5.0000000000000000000e-81+3.1415926535897932385j")


class TestPartsThatMayBeZero:
    """A part that is not told from 0 is a bound, far below the digits of the other part."""

    def test_it_has_its_digits_beside_the_other_part(self, run):
        found = run("eval", "exp(1j*pi*x)", "x=1", "--digits", "20")
        assert re.fullmatch(
            r"value  -1\.0{19}\+\(\|…\| < 1e-12\d\)j\n\nby  derivative\n"
            r"x   \(\|…\| < 1e-12\d\)-3\.1415926535897932385j\n",
            found.out,
        )
        assert (found.status, found.err) == (0, "")

    def test_a_part_that_is_as_far_below_and_not_0_is_found(self, run):
        assert run("eval", "exp(1j*pi) + 1e-100j", "--digits", "20", "--bare").out == (
            "-1.0000000000000000000+1.0000000000000000000e-100j\n"
        )

    @pytest.mark.parametrize(
        ("program", "out"),
        [
            # Neither part is known, or the other one is exactly 0, or too few digits are allowed.
            (("exp(1j*pi) + 1",), "(|…| < 1e-300)+(|…| < 1e-300)j"),
            (("1j*(exp(x)*exp(-x) - 1)", "x=0.1"), "0+(|…| < 1e-300)j"),
            (("1e-305 + 1j*(exp(x)*exp(-x) - 1)", "x=0.1"), "1e-305+(|…| < 1e-300)j"),
        ],
    )
    def test_beside_what_is_no_larger_it_has_none(self, run, program, out):
        found = run("eval", *program, "--digits", "20", "--max-precision", "300", "--no-grad")
        assert (found.status, found.out) == (1, f"value  {out}\n")
        assert "a result is not told from 0" in found.err


# Programs, and boxes of their inputs.
ENCLOSED = [
    ("exp(1j*x)", {"x": (1, 2)}),
    ("1/(1 + 1j*w*R*C)", {"w": (900, 1100), "R": (2000, 2000), "C": (1e-6, 1e-6)}),
    ("z = x + 1j; for k in range(5) { z = z**2/2 }; z", {"x": (1, 1.01)}),
    ("sin(z)/z", {"z": ((0.45, 0.45), (0.1, 0.11))}),
    ("log(z)*gamma(z)", {"z": ((1, 1), (0.5, 0.6))}),
    ("sqrt(z*x)", {"z": ((-1, -0.9), (0.1, 0.1)), "x": (1, 1)}),
]


def inside(member: Any, number: complex) -> bool:
    parts = ((member["re"], number.real), (member["im"], number.imag))
    return all(float(low) - 1e-7 <= part <= float(high) + 1e-7 for (low, high), part in parts)


class TestEnclosures:
    @pytest.mark.slow
    @pytest.mark.parametrize(("program", "box"), ENCLOSED)
    def test_values_and_derivatives_are_in_them_everywhere(self, run, program, box):
        words, random = [], np.random.default_rng(1)
        for name, ends in box.items():
            pair = ends if isinstance(ends[0], tuple) else (ends,)
            texts = [f"({low}..{high})" for low, high in pair]
            words.append(f"{name}={texts[0][1:-1] if len(pair) == 1 else f'{texts[0]}+{texts[1]}j'}")
        found = run("eval", program, *words, "--enclose", "--json").json
        compiled = gradcli.compile(program)
        for _ in range(20):
            point = {
                name: complex(*(random.uniform(*pair) for pair in ends))
                if isinstance(ends[0], tuple)
                else random.uniform(*ends)
                for name, ends in box.items()
            }
            proved = compiled.evaluate(point, digits=15)
            assert inside(found["value"], as_complex(proved.value))
            for name in box:
                assert inside(found["grad"][name], as_complex(proved.grad[name]))

    def test_a_table(self, run):
        assert run("eval", "z**2", "z=(1±0.1)+(2±0.1)j", "--enclose", "--order", "2").out == (
            "value  [-3.6, -2.4] + [3.42, 4.62]j\n\nby  derivative\nz   [1.8, 2.2] + [3.8, 4.2]j\n\n"
            "by   derivative\nz,z  [2, 2] + [0, 0]j\n"
        )

    def test_a_real_value_of_a_complex_input_has_the_gradient_of_its_parts(self, run):
        found = run("eval", "abs(z)*x", "z=(3±0.1)+4j", "x=1..2", "--enclose", "--json").json
        assert found["box"] == {"z": {"re": ["2.9", "3.1"], "im": ["4", "4"]}, "x": ["1", "2"]}
        assert inside(found["grad"]["z"], 1.5 * (0.6 + 0.8j))
        assert found["monotonic"] == {"x": "increasing"}

    def test_arrays(self, run):
        found = run("eval", "[exp(1j*x), x]", "x=1..2", "--enclose", "--no-grad", "--json").json
        assert found["shape"] == [2]
        assert found["value"]["re"] == [["-0.4161468366", "0.5403023059"], ["1", "2"]]
        assert found["value"]["im"] == [["0.8414709848", "1.000000001"], ["0", "0"]]

    def test_boxes_across_a_branch_cut_have_no_bounds(self, run):
        found = run("eval", "sqrt(z)", "z=-1+(0±0.1)j", "--enclose")
        assert found.status == 1
        assert "there is no bound, or no value, at some point of imag(z)" in found.err

    def test_a_program_that_is_not_holomorphic_is_an_error(self, run):
        found = run("eval", "z*conj(z)", "z=(1±0.1)+2j", "--enclose")
        assert found.status == 1
        assert "'conj' of a complex input is not" in found.err
        assert "enclose real(…), imag(…) or abs(…) of it" in found.err

    def test_in_python(self):
        found = gradcli.compile("z*1j").enclose({"z": 1 + 2j}, order=1)
        assert [*map(float, (*found.value.real, *found.value.imag))] == [-2, -2, 1, 1]
        assert found.grad["z"].imag == (1, 1)


class TestMatrices:
    def test_products_and_systems_of_fractions_are_exact(self, run):
        words = ["A=[[1,2j],[3,4]]", "--no-grad", "--digits", "20", "--json"]
        assert run("eval", "det(A)", *words).json["value"] == {"re": "4", "im": "-6"}
        assert run("eval", "A@inv(A)", *words).json["value"] == {
            "re": [["1", "0"], ["0", "1"]],
            "im": [["0", "0"], ["0", "0"]],
        }
        assert run("eval", "einsum('ij,jk,k->i', A, A, [1, 1j])", *words).json["value"] == {
            "re": ["-9", "9"],
            "im": ["6", "16"],
        }

    def test_a_singular_matrix_is_an_error(self, run):
        found = run("eval", "inv(A)", "A=[[1,1j],[1j,-1]]", "--no-grad", "--digits", "20")
        assert found.status == 1
        assert "singular matrix" in found.err

    def test_determinants_and_exponentials_beside_mpmath(self, run):
        words = ["A=[[0.1+1j,0.2],[0.3j,2]]", "--no-grad", "--digits", str(DIGITS), "--json"]
        matrix = mpmath.matrix([[mpc("0.1", 1), mpf("0.2")], [mpc(0, "0.3"), 2]])
        exponential = mpmath.expm(matrix)
        found = run("eval", "expm(A)", *words).json["value"]
        for i in range(2):
            for j in range(2):
                assert_digits(element(found, i, j), exponential[i, j])
        assert_digits(run("eval", "slogdet(A)[1]", *words).json["value"], mpmath.log(abs(mpmath.det(matrix))))
        assert_digits(run("eval", "logdet(A)", *words).json["value"], mpmath.log(mpmath.det(matrix)))

    @pytest.mark.parametrize("coefficients", ["1,0.1,3", "1,-6,11,-6.5", "1,1j,2,0.3", "2,0,1"])
    def test_roots_in_the_order_of_numpy(self, run, coefficients):
        found = run("eval", "roots(p)", f"p=[{coefficients}]", "--no-grad", "--digits", str(DIGITS), "--json").json
        exactly = [mpc(0, c[:-1]) if c.endswith("j") else mpf(c) for c in coefficients.split(",")]
        near = np.roots([complex(c) for c in exactly])
        known = mpmath.polyroots(exactly, maxsteps=200, extraprec=200)
        for i, number in enumerate(near):
            assert_digits(element(found["value"], i), min(known, key=lambda x: abs(x - mpc(number))))

    def test_eigenvalues_and_their_derivatives(self, run):
        words = ["k=4", "c=1", "--digits", "30", "--json"]
        found = run("eval", "imag(eigvals([[0, 1], [-k, -c]])[0])", *words).json
        root = mpmath.sqrt(mpf(15) / 4)
        assert_digits(found["value"], root, 30)
        assert_digits(found["grad"]["k"], 1 / (2 * root), 30)
        assert_digits(found["grad"]["c"], -1 / (4 * root), 30)

    def test_equal_eigenvalues_are_undecided(self, run):
        words = ["--digits", "20", "--max-precision", "100"]
        assert "two eigenvalues cannot be told apart" in run("eval", "eigvals([[2, 0], [0, 2]])", *words).err
        assert "two roots cannot be told apart" in run("eval", "roots([1, -2, 1])", *words).err


class TestFourierTransforms:
    def test_digits_of_a_frequency_and_its_derivatives(self, run):
        found = run("eval", "fft(x)[1]", "x=[0.1,2,0.5]", "--digits", str(DIGITS), "--json").json
        roots = [mpmath.expjpi(mpf(-2 * k) / 3) for k in range(3)]
        assert_digits(found["value"], mpf("0.1") + 2 * roots[1] + roots[2] / 2)
        for k, root in enumerate(roots):
            assert_digits(element(found["grad"]["x"], k), root)

    @pytest.mark.parametrize(
        "program",
        ["fft(z)", "ifft(z, norm='ortho')", "rfft(real(z))", "irfft(z)", "irfft(z, n=7)", "hfft(z)", "fft2([z, 1j*z])"],
    )
    def test_they_are_those_of_numpy(self, run, program):
        found = run("eval", program, "z=[1+2j,3j,4+1j,-0.5,0.25j]", "--certify", "--no-grad", "--json").json
        assert found["certified"]["value"] >= 13


def test_there_is_no_derivative_where_a_power_has_none(run):
    for options in ((), ("--digits", "20")):
        found = run("eval", "z**z", "z=0j", *options, "--json").json["grad"]["z"]
        assert not {"0", 0.0} & {found["re"]}


def test_solutions_with_complex_states_have_digits(run):
    found = run("eval", "odeint(lambda y, t: 1j*y, 1+0j, [0, 1])", "--no-grad", "--digits", "20", "--json").json
    assert_digits(element(found["value"], 1), mpmath.exp(1j), 20)


def test_proofs_of_roots_are_of_real_numbers_alone(run):
    found = run("solve", "abs(x + 1j) = 2", "x=0..3", "--all", "--prove")
    assert found.status == 1
    assert "this is proved of real numbers alone" in found.err
