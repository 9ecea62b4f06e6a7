"""Tests proved digits of array functions: entries at their samples, matrices against mpmath, exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq

from gradcli import Tensor, arrays, func, grad
from gradcli.arrays import backends
from gradcli.arrays.flint.balls import Balls, UndecidedError, from_text, precise
from gradcli.errors import GradcliError
from gradcli.primitives import table
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from tests.primitives.test_primitives import CASES, Case, case_of
from tests.samples import has_complex_sample
from tests.wrong_rules import replace_vjp

SUBJECTS = table._all()
# Entries, and single cases, that need decompositions.
LACKING = {
    "cholesky": "cholesky",
    "sqrtm": "sqrtm",
    "logm": "logm",
    "eigvalsh": "eigvalsh",
    "eigenvectors": "eigh",
    "orthonormal": "qr",
    "svdvals": "svdvals",
    "left_vectors": "svd",
    "matrix_rank": "svdvals",
    "paired_values": "svdvals",
    "right_vectors": "svd",
    "cond-0": "svdvals",
    "cond-3": "svdvals",
    "matrix_norm-1": "svdvals",
    "matrix_norm-2": "svdvals",
    "matrix_norm-5": "svdvals",
}


def is_of_arrays(entry: Operation) -> bool:
    """Whether an entry is not one of the functions of numbers, which have their own tests."""
    return not getattr(entry, "elementwise", False) and SUBJECTS[entry] not in ("elementwise", "special")


# `test_digits_complex` tests those with complex numbers.
OF_COMPLEX = ("polar", "view_as_complex")
OF_ARRAYS = [
    case
    for case in CASES
    if is_of_arrays(case.entry) and not has_complex_sample(case.entry) and case.entry.name not in OF_COMPLEX
]


def lacking(case: Any) -> str | None:
    """The name of the function without proved digits that a case needs, if any."""
    return LACKING.get(case.id, LACKING.get(case.entry.name))


# Second derivatives of eigenvalues are undecided: no equality of phases is proved.
WITH_DIGITS = [case for case in OF_ARRAYS if lacking(case) is None and case.id != "poly-1"]
WITHOUT_DIGITS = [pytest.param(case, name, id=case.id) for case in OF_ARRAYS if (name := lacking(case)) is not None]


class in_balls:
    """Within the block everything is computed with balls of `bits` bits."""

    def __init__(self, bits: int = 200) -> None:
        self.parts = precise(bits), arrays.using_namespace(backends.namespace("flint"))

    def __enter__(self) -> None:
        for part in self.parts:
            part.__enter__()

    def __exit__(self, *error: Any) -> None:
        for part in reversed(self.parts):
            part.__exit__(*error)


def balls(numbers: Any) -> Balls:
    """Decimals, lists of them and float arrays as balls."""
    if isinstance(numbers, str):
        return Balls(from_text(numbers))
    if isinstance(numbers, list):
        return Balls(np.frompyfunc(from_text, 1, 1)(np.array(numbers, object)))
    return backends.namespace("flint").asarray(numbers, "float64")


def weights(shape: Sequence[int], shift: int) -> Any:
    numbers = [(7 * i + 3 * shift) % 5 - 1.75 for i in range(math.prod(shape))]
    return np.array(numbers).reshape(shape) if shape else numbers[0]


def weighted(tensors: Sequence[Tensor], shift: int) -> Tensor:
    """A number that depends on every element."""
    terms = [(t * weights(t.shape, shift + i)).sum() for i, t in enumerate(tensors)]
    return sum(terms[1:], start=terms[0])


def derived(call: Callable[..., Any], operands: Sequence[Any], orders: int = 2) -> list[Any]:
    """The value, the gradient of its weighted sum, and the gradient of the weighted sum of that."""
    leaves = [Tensor(o).requires_grad_() for o in operands]
    found = [call(*leaves)]
    last = found
    for order in range(orders):
        last = [t for t in last if isinstance(t, Tensor) and t.requires_grad]
        if not last:
            break
        last = [g for g in grad(weighted(last, order), leaves, create_graph=True, allow_unused=True) if g is not None]
        found += last
    return [t.inner if isinstance(t, Tensor) else t for t in found]


def numbers_of(array: Any) -> list[Any]:
    """The elements as FLINT balls, in order."""
    if not isinstance(array, Balls):
        array = balls(np.asarray(array, "float64"))
    with precise(200):
        return [arb(x) for x in (array.numbers.flat if array.shape else [array.numbers])]


def assert_encloses(ball: Any, number: float, largest: float) -> None:
    """Assert that a float is in a narrow ball, up to rounding errors relative to the largest number."""
    if math.isnan(number) or math.isinf(number):
        assert not ball.is_finite()
        return
    assert ball.rad() <= 1e-40 * max(1.0, largest)
    assert abs(float(ball.mid()) - number) <= 1e-11 * max(1.0, largest)


class TestEveryEntry:
    @pytest.mark.parametrize("case", WITH_DIGITS, ids=lambda c: c.id)
    def test_it_encloses_value_and_derivatives_to_order_2(self, case: Case) -> None:
        floats = derived(case.call, case.operands)
        with in_balls():
            found = derived(case.call, [balls(np.asarray(o)) for o in case.operands])
        assert len(found) == len(floats)
        for ours, theirs in zip(found, floats):
            numbers = np.asarray(arrays.to_numpy(theirs), float)
            assert arrays.shape(ours) == numbers.shape
            largest = float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0))
            for ball, number in zip(numbers_of(ours), numbers.ravel().tolist()):
                assert_encloses(ball, number, largest)

    @pytest.mark.parametrize(("case", "name"), WITHOUT_DIGITS)
    def test_what_stands_on_a_decomposition_names_it(self, case: Case, name: str) -> None:
        with in_balls(), pytest.raises(GradcliError, match=f"no proved digits of '{name}': ball arithmetic has no "):
            case.call(*(Tensor(balls(np.asarray(o))) for o in case.operands))

    def test_a_wrong_rule_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = table.known("cumsum")
        assert isinstance(entry, Primitive)
        replace_vjp(monkeypatch, entry, lambda g, _y, _x, **_params: g)
        case = case_of(entry, ([1.0, 2.5, -3.0],))
        with in_balls():
            (_, gradient) = derived(case.call, [balls(["1", "2.5", "-3"])], orders=1)
        with pytest.raises(AssertionError):
            assert_encloses(numbers_of(gradient)[0], -0.5, 1.0)


# Decimals, which floats do not represent exactly.
_MATRIX = [["2.1", "0.5", "-0.3"], ["-1", "3.7", "0.25"], ["0.1", "-0.6", "1.9"]]
_RIGHT = [["1", "0.3"], ["-2", "0.7"], ["0.5", "-1.1"]]


class TestMatricesBesideMpmath:
    @pytest.fixture(autouse=True)
    def _digits(self) -> Any:
        with mpmath.workdps(70):
            self.a, self.b = (
                mpmath.matrix([[mpmath.sin(mpmath.mpf(t)) for t in row] for row in rows]) for rows in (_MATRIX, _RIGHT)
            )
            yield

    def of_balls(self, function: Callable[..., Any]) -> list[Any]:
        sin = table.known("sin")
        return numbers_of(function(sin(Tensor(balls(_MATRIX))), sin(Tensor(balls(_RIGHT)))).inner)

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (lambda a, b: table.known("solve")(a, b), lambda a, b: mpmath.inverse(a) * b),
            (lambda a, b: table.known("inv")(a), lambda a, b: mpmath.inverse(a)),
            (lambda a, b: table.known("det")(a), lambda a, b: mpmath.matrix([[mpmath.det(a)]])),
            (lambda a, b: table.known("logdet")(a @ a.T), lambda a, b: mpmath.matrix([[2 * mpmath.log(abs(mpmath.det(a)))]])),
            (lambda a, b: table.known("matrix_exp")(a), lambda a, b: mpmath.expm(a, method="taylor")),
            (lambda a, b: a @ b, lambda a, b: a * b),
            (lambda a, b: table.known("einsum")("ij,jk,lk->il", a, b, b), lambda a, b: a * b * b.T),
            (lambda a, b: table.known("matrix_power")(a, -3), lambda a, b: mpmath.inverse(a) ** 3),
        ],
    )  # fmt: skip
    def test_values(self, ours: Any, theirs: Any) -> None:
        with in_balls():
            found = self.of_balls(ours)
            expected = theirs(self.a, self.b)
            for ball, number in zip(found, [*expected], strict=True):
                text = mpmath.nstr(number, 60)
                assert ball.rad() < 1e-50
                assert abs(ball - arb(text)) < 1e-50

    def test_the_series_of_an_exponential_of_a_matrix(self) -> None:
        """Coefficients of exp(A + t*B) by the exponential of a block matrix."""
        direction = mpmath.matrix(3, 3)
        direction[0, 1] = direction[2, 0] = 1
        blocks = mpmath.zeros(9)
        for i in range(3):
            blocks[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = self.a
        for i in range(2):
            blocks[3 * i : 3 * i + 3, 3 * i + 3 : 3 * i + 6] = direction
        expected = mpmath.expm(blocks, method="taylor")[0:3, 6:9]
        with in_balls():
            tangent = balls(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
            start = table.known("sin")(Tensor(balls(_MATRIX)))

            def slope(x: Any) -> Any:
                return func.jvp(table.known("matrix_exp"), (x,), (Tensor(tangent),))[1]

            second = func.jvp(slope, (start,), (Tensor(tangent),))[1]
            for ball, number in zip(numbers_of(second.inner), [*expected], strict=True):
                assert ball.rad() < 1e-50
                assert abs(ball / 2 - arb(mpmath.nstr(number, 60))) < 1e-50


def hilbert(n: int) -> str:
    return "[" + ", ".join("[" + ", ".join(f"1/{i + j + 1}" for j in range(n)) + "]" for i in range(n)) + "]"


def inverse(rows: list[list[Fraction]]) -> tuple[Fraction, list[list[Fraction]]]:
    """The determinant and the inverse by Gauss-Jordan elimination without pivoting."""
    n, determinant = len(rows), Fraction(1)
    wide = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(rows)]
    for k in range(n):
        pivot = wide[k][k]
        determinant *= pivot
        wide[k] = [x / pivot for x in wide[k]]
        for i in range(n):
            if i != k:
                wide[i] = [x - wide[i][k] * y for x, y in zip(wide[i], wide[k])]
    return determinant, [row[n:] for row in wide]


class TestFractions:
    def test_the_determinant_of_a_hilbert_matrix_and_its_gradient_are_exact(self) -> None:
        n = 12
        rows = [[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)]
        determinant, inverted = inverse(rows)
        with in_balls():
            given = np.frompyfunc(lambda x: fmpq(x.numerator, x.denominator), 1, 1)(np.array(rows, object))
            leaf = Tensor(Balls(given)).requires_grad_()
            value = table.known("det")(leaf)
            value.backward()
        assert Fraction(int(value.inner.numbers.p), int(value.inner.numbers.q)) == determinant
        found = leaf.grad.inner.numbers
        for i in range(n):
            for j in range(n):
                assert Fraction(int(found[i, j].p), int(found[i, j].q)) == determinant * inverted[j][i]

    def test_the_command_prints_the_fraction(self, run) -> None:
        determinant, _ = inverse([[Fraction(1, i + j + 1) for j in range(12)] for i in range(12)])
        assert determinant.numerator == 1
        with mpmath.workdps(60):
            expected = mpmath.nstr(1 / mpmath.mpf(determinant.denominator), 50, strip_zeros=False)
        found = run("eval", "det(H)", f"H={hilbert(12)}", "--digits", "50", "--json").json
        assert found["value"] == expected
        assert run("eval", "sum(inv(H))", f"H={hilbert(8)}", "--digits", "20", "--no-grad").out == "value  64\n"

    def test_a_singular_matrix_is_known_to_be_one(self, run) -> None:
        error = run("eval", "sum(inv(A))", "A=[[0.1, 0.2], [0.3, 0.6]]", "--digits", "20", "--json").error
        assert error["message"] == "'inv' failed: singular matrix"
        found = run("eval", "det(A)", "A=[[0.1, 0.2], [0.3, 0.6]]", "--digits", "20", "--json").json
        assert found["value"] == "0"
        assert found["grad"] == {"A": [["0.6", "-0.3"], ["-0.2", "0.1"]]}

    def test_ranges_and_lines_are_exact(self, run) -> None:
        def value(program: str, *words: str) -> Any:
            return run("eval", program, *words, "--digits", "20", "--json", "--no-grad").json["value"]

        assert value("arange(0, 1, 0.1)") == ["0", *(f"0.{k}" for k in range(1, 10))]
        assert value("linspace(0, 1, 11)") == ["0", *(f"0.{k}" for k in range(1, 10)), "1"]
        assert value("quantile(x, 0.3)", "x=[0.1, 0.2, 0.4, 0.7, 1.1]") == "0.24"
        assert value("mean(x)", "x=[0.1, 0.2, 0.6]") == "0.3"
        assert value("norm(x)", "x=[0.3, 0.4]") == "0.5"
        assert value("var(x, correction=1/3)", "x=[0.1, 0.2, 0.6]") == "0.0525"
        assert value("norm(x, 1/3)", "x=[1, 8, -27]") == "216"
        assert value("sum([x > 1, x < 2])", "x=1.5") == "2"
        assert value("int(7/2) + int(10/3)") == "6"
        assert value("sorted([1/3, 0.33333333333333333, 0])[1]") == "0.33333333333333333"
        assert value("searchsorted([0.1, 0.2, 0.3], [0.2, 0.25])") == ["1", "2"]
        assert value("cummax(x)[1]", "x=[0.1, 1/3, 0.3, 0.4]") == ["0", "1", "1", "3"]


class TestComparisons:
    def test_a_maximum_of_what_cannot_be_told_apart_is_there_and_a_position_is_not(self, run) -> None:
        same = "y=[sin(1)**2 + cos(1)**2, 1]"
        program = f"{same}; max(y)"
        assert run("eval", program, "--digits", "20", "--no-grad").out == "value  1.0000000000000000000\n"
        for function in ("argmax", "sort", "argsort"):
            outcome = run("eval", f"{same}; {function}(y)", "--digits", "20", "--no-grad", "--max-precision", "200")
            assert outcome.err.startswith("error: two numbers cannot be told apart with 200 digits")

    def test_whether_a_matrix_of_balls_is_singular_stays_open(self) -> None:
        with in_balls():
            row = table.known("sin")(Tensor(balls(["1", "2"])))
            matrix = table.known("stack")([row, row * 2.0])
            with pytest.raises(UndecidedError):
                table.known("inv")(matrix)

    def test_the_order_of_a_norm_of_a_matrix_is_a_float(self, run) -> None:
        outcome = run("eval", "matrix_norm(A, 1/3)", "A=[[1, 2], [3, 4]]", "--digits", "20")
        assert outcome.err.startswith("error: the order of a norm must be a number that a float is, as 0.5 is and 1/3")

    def test_an_exponential_that_flint_gives_up_at_first_is_no_nan(self, run) -> None:
        found = run(
            "eval", "expm(A)[1, 0]/exp(1e300)", "A=[[1e300, 0], [1, 0]]", "--digits", "20", "--no-grad", "--json"
        )
        assert found.json["value"] == "1.0000000000000000000e-300"

    def test_one_ball_in_two_places_is_one_number(self) -> None:
        with in_balls():
            x = table.known("sin")(Tensor(balls(["2", "1"])))
            order = table.known("argsort")(x[np.array([0, 1, 0])])
        assert np.asarray(order.inner).tolist() == [1, 0, 2]


_NETWORK = "tanh(V@tanh(W@x + b) + c)"
_WEIGHTS = [
    "W=[[0.3, -0.2], [0.5, 0.7], [-0.4, 0.1]]", "V=[[0.6, -0.3, 0.2], [0.1, 0.4, -0.5]]", "b=[0.1, -0.2, 0.3]", "c=[0.05, 0]",
    "x=[0.7, -1.1]",
]  # fmt: skip


def compared(ours: Any, theirs: Any) -> None:
    """Assert that texts agree with the floats of an ordinary run."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        ours, theirs = [*ours.values()], [*theirs.values()]
    if isinstance(ours, list):
        for one, other in zip(ours, theirs, strict=True):
            compared(one, other)
    else:
        assert math.isclose(float(ours), theirs, rel_tol=1e-12, abs_tol=1e-14)


class TestPrograms:
    @pytest.mark.cases(4)
    @pytest.mark.parametrize(
        "words",
        [
            [f"sum({_NETWORK}**2)", *_WEIGHTS],
            [_NETWORK, *_WEIGHTS, "--jacobian", "--wrt", "W,x"],
            [f"sum({_NETWORK})", *_WEIGHTS, "--order", "2", "--wrt", "x,b"],
            [f"{_NETWORK}[0]", *_WEIGHTS, "--order", "3", "--wrt", "x"],
            ["sum((X@w - y)**2) + norm(w, 3)", "X=[[1, 0.5], [0.2, 2], [3, 1]]", "y=[1, 2, 0.3]", "w=[0.1, -0.7]", "--order", "2"],
            ["y = x; y[1] = y[0]*y[2]; sum(y.T[::2]*y[1:])", "x=[0.3, 0.7, 1.3]", "--order", "2"],
            ["logsumexp(x) + sum(softmax(x)[:, None]*x) + median(x)", "x=[0.3, 0.7, -1.3]", "--order", "2"],
            ["sum(where(x > 0, log(abs(x) + x), 0)*x[::-1])", "x=[0.3, 0, 1.3]"],
            ["sum(cumprod(x)[1:]*prod(x)) + var(x) + std(x)", "x=[0.3, 0, 1.3]", "--order", "2"],
            ["sum(solve(A, b)*expm(A)[0])", "A=[[2.1, 0.4], [-0.3, 1.7]]", "b=[1, 0.2]", "--order", "2"],
            ["vmap(lambda r: sum(sin(r)*r))(x)", "x=[[0.3, 0.7], [0.1, 1.3]]", "--jacobian"],
            ["sum(hessian(sum(exp(x)*roll(x, 1)), x))", "x=[0.3, 0.7, -1.3]"],
            ["cross_entropy(x, [0.2, 0.5, 0.3], label_smoothing=0.1)", "x=[0.3, 0.7, -1.3]", "--order", "2"],
            ["interp(x, [0, 0.1, 0.4], y)", "x=0.3", "y=[1, 2, 0.3]"],
            ["sum(convolve(x, y, 'same')*pad(y, (0, 1), 'reflect'))", "x=[0.3, 0.7, -1.3]", "y=[0.1, 2]"],
            ["sum(rand(3, seed=1)*x) + trace(kron(A, A))", "x=0.3", "A=[[0.1, 0.2], [0.3, 0.6]]"],
        ],
    )  # fmt: skip
    def test_all_kinds_give_the_numbers_of_a_run_in_floats(self, run, words) -> None:
        floats = run("eval", *words, "--json").json
        found = run("eval", *words, "--digits", "25", "--json").json
        for part in ("value", "grad", "jacobian", "derivatives"):
            compared(found.get(part, 0), floats.get(part, 0.0))

    def test_pseudo_inverses_are_exact_where_the_rank_is_full(self, run) -> None:
        def value(program: str, A: str) -> Any:  # noqa: N803
            return run("eval", program, f"A={A}", "--digits", "20", "--json", "--no-grad").json["value"]

        assert value("pinv(A)", "[[1, 0], [1, 1], [1, 2]]") == [
            ["0.83333333333333333333", "0.33333333333333333333", "-0.16666666666666666667"],
            ["-0.5", "0", "0.5"],
        ]
        assert value("A@pinv(A)", "[[0.1, 2, 3], [4, 5.5, 6]]") == [["1", "0"], ["0", "1"]]
        program = "x, rest, rank, s = lstsq(A, [0.1, 0.3, 0.4]); [x[0], x[1], rest[0], rank]"
        assert value(program, "[[1, 0], [1, 1], [1, 2]]") == [
            "0.11666666666666666667", "0.15", "0.0016666666666666666667", "2",
        ]  # fmt: skip
        error = run("eval", "pinv(A)[0, 0]", "A=[[1, 2], [0.5, 1]]", "--digits", "20", "--json").error
        assert error["message"] == "'pinv' failed: there are proved digits for full rank alone"

    @pytest.mark.parametrize(
        ("program", "exact"),
        [("cond(A, 1)", 2.5), ("cond(A, p=inf)", 2.5), ("cond(A, 'fro')", 2.625), ("cond(A, p='fro')", 2.625)],
    )
    def test_condition_numbers_in_norms_without_singular_values(self, run, program, exact) -> None:
        words = ["eval", program, "A=[[2, 1], [0, 4]]", "--no-grad"]
        assert float(run(*words).out.split()[1]) == pytest.approx(exact, rel=1e-15)
        assert float(run(*words, "--digits", "20").out.split()[1]) == exact

    @pytest.mark.parametrize(
        ("program", "name", "lacking"),
        [
            ("qr(A)[1][0, 0]", "qr", "QR decomposition"),
            ("cholesky(A)[0, 0]", "cholesky", "Cholesky decomposition"),
            ("eigvalsh(A)[0]", "eigvalsh", "eigenvalues"),
            ("eigh(A)[1][0, 0]", "eigvalsh", "eigenvalues"),
            ("svdvals(A)[0]", "svdvals", "singular values"),
            ("svd(A)[0][0, 0]", "svd", "singular vectors"),
            ("matrix_norm(A, 2)", "svdvals", "singular values"),
            ("cond(A)", "svdvals", "singular values"),
        ],
    )
    def test_what_balls_have_not_is_an_error_with_its_place(self, run, program, name, lacking) -> None:
        error = run("eval", f"1 + {program}", "A=[[2, 0.5], [0.5, 3]]", "--digits", "20", "--json").error
        assert error["message"] == f"there are no proved digits of '{name}': ball arithmetic has no {lacking}"
        assert (error["line"], error["column"]) == (1, 5)
