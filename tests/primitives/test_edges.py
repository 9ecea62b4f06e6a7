"""Tests functions at unusual numbers, arguments and sizes."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli import arrays, grad, limits, tensor
from gradcli.errors import CallError, EvaluationError, GradcliError, LimitError, ShapeError, UsageError

INF, NAN = math.inf, math.nan


def value(program: str, **inputs: Any) -> Any:
    return gradcli.compile(program)(**inputs)


def gradient(program: str, x: Any) -> Any:
    return gradcli.compile(program).value_and_grad({"x": x})[1]["x"]


class TestTruthValuesInArithmetic:
    @pytest.mark.parametrize(
        ("program", "expected"),
        [
            ("(x > 0) - (x > 1)", [0.0, 1.0]),
            ("(x > 0)*(x > 1)", [1.0, 0.0]),
            ("(x > 1)/2", [0.5, 0.0]),
            ("-(x > 0)", [-1.0, -1.0]),
            ("abs(x > 1)", [1.0, 0.0]),
            ("sign(x > 1)", [1.0, 0.0]),
            ("softmax(x > 0)", [0.5, 0.5]),
            ("cumsum(x > 0)", [1.0, 2.0]),
            ("sort(x > 1)", [0.0, 1.0]),
            ("sum(x > 0)", 2.0),
            ("mean(x > 1)", 0.5),
            ("max(x > 1)", 1.0),
            ("(x > 0) @ (x > 1)", 1.0),
            ("einsum('i,j->', x > 0, x > 1)", 2.0),
            ("norm(x > 0)", math.sqrt(2)),
        ],
    )
    def test_they_count_as_numbers(self, program, expected):
        np.testing.assert_allclose(value(program, x=[3.0, 1.0]), expected, rtol=1e-15)

    @pytest.mark.parametrize(("program", "expected"), [("(x > 0) + (x > 1)", 2.0), ("-(x > 0)", -1.0)])
    def test_single_ones_too(self, program, expected):
        found = value(program, x=3.0)
        assert (found, type(found)) == (expected, float)

    def test_they_stay_masks_where_elements_are_only_moved(self):
        assert value("m = (x > 0)[::-1]; x[m]", x=[1.0, -2.0]).tolist() == [-2.0]
        assert value("m = concat([x > 0, x > 5]); stack([x, x]).reshape(4)[m]", x=[1.0, -2.0]).tolist() == [1.0]
        assert value("m = where(x > 0, x > 0, x > 5); x[m]", x=[1.0, -2.0]).tolist() == [1.0]

    def test_they_take_the_dtype_of_what_is_beside_them(self):
        single = tensor([1.0, 2.0], dtype="float32")
        assert ((single > 1) * single).dtype == "float32"
        assert ((single > 1) - (single > 0)).dtype == "float64"
        with arrays.using_dtype("float32"):
            assert ((single > 1) - (single > 0)).dtype == "float32"

    def test_a_gradient_flows_past_them(self):
        assert gradient("sum(((x > 0) - 2*(x > 1))*x)", [3.0, 1.0]).tolist() == [-1.0, 1.0]


class TestAxes:
    def test_the_order_of_axes_may_be_an_array(self):
        x = [[[1.0, 2.0, 3.0]]]
        for program in ("transpose(x, a)", "x.transpose(axes=a)", "permute(x, a)"):
            assert value(program, x=x, a=np.array([2.0, 0.0, 1.0])).shape == (3, 1, 1)
        assert tensor(x).transpose(np.array([2, 0, 1])).shape == (3, 1, 1)
        assert tensor([[1.0, 2.0]]).transpose(np.array([1, 0])).shape == (2, 1)

    def test_numpy_transposes_a_tensor(self):
        assert np.transpose(tensor([[1.0, 2.0]]), (1, 0)).shape == (2, 1)

    def test_moveaxis(self):
        x = np.zeros((2, 3, 4, 5))
        for source, destination in ((0, -1), ((0, 1), (2, 0)), ([3, 1], [0, 3])):
            expected = np.moveaxis(x, source, destination).shape
            assert gradcli.moveaxis(tensor(x), source, destination).shape == expected


class TestNotANumber:
    @pytest.mark.parametrize("function", ["median", "max", "min"])
    @pytest.mark.parametrize(
        ("x", "expected"),
        [([NAN, 1.0, 2.0], [1.0, 0.0, 0.0]), ([NAN, 1.0, NAN, 2.0], [0.5, 0.0, 0.5, 0.0])],
    )
    def test_it_is_the_extreme_and_the_middle_and_gets_the_gradient(self, function, x, expected):
        assert math.isnan(value(f"{function}(x)", x=x))
        assert gradient(f"{function}(x)", x).tolist() == expected

    def test_only_its_own_row_is_concerned(self):
        x = [[NAN, 1.0, 2.0], [3.0, 5.0, 4.0]]
        np.testing.assert_array_equal(value("median(x, axis=1)", x=x), [NAN, 4.0])
        assert gradient("sum(max(x, axis=1))", x).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]

    @pytest.mark.parametrize(
        ("x", "expected"),
        [
            ([-INF, -INF], [0.5, 0.5]),
            ([INF, INF], [0.5, 0.5]),
            ([-INF, 1.0], [0.0, 1.0]),
            ([INF, 1.0], [1.0, 0.0]),
            ([-INF, INF], [0.0, 1.0]),
        ],
    )
    def test_sums_of_exponentials_of_infinities_are_maxima(self, x, expected):
        for program in ("logsumexp(x)", "logaddexp(x[0], x[1])"):
            assert value(program, x=x) == max(x)
            np.testing.assert_array_equal(gradient(program, x), expected)


class TestLimits:
    @pytest.mark.parametrize(
        "program",
        [
            "sum(repeat(1, 4e8))",
            "repeat([1, 2], [4e8, 4e8])",
            "diag([1, 2], 1e5)",
            "A @ A",
            "inv(A)",
            "det(A)",
            "solve(A, A)",
            "cholesky(A)",
            "einsum('ij,jk->ik', A, A)",
            "einsum('ij,jk,kl->il', A, A, A)",
        ],
    )
    def test_work_is_counted(self, program):
        inputs = {"A": np.eye(400)} if "A" in program else {}
        began = time.perf_counter()
        with (
            limits.within(max_elements=1_000_000),
            pytest.raises(LimitError, match="more than 1,000,000 array elements"),
        ):
            value(program, **inputs)
        assert time.perf_counter() - began < 2

    def test_a_chain_of_products_counts_as_the_pairs_it_is_made_of(self):
        matrix = np.eye(200)
        with limits.within(max_elements=1_000_000):
            value("sum(einsum('ij,jk,kl->il', A, A, A))", A=matrix)

    def test_a_shape_of_many_numbers(self):
        for program in ("tile([1, 2], n)", "reshape([1, 2], n)", "zeros(n)", "sum([1, 2], axis=n)"):
            with pytest.raises(ShapeError, match="1,000,000 numbers are too many"):
                value(program, n=np.ones(1_000_000))

    @pytest.mark.parametrize("program", ["[1, 2][1e30]", "[1, 2][-1e30]", "[1, 2][7]"])
    def test_a_far_index(self, program):
        with pytest.raises(ShapeError, match="out of bounds"):
            value(program)

    def test_a_far_diagonal(self):
        x = [[1.0, 2.0], [3.0, 4.0]]
        assert value("tril(x, 1e30)", x=x).tolist() == x
        assert value("triu(x, 1e30)", x=x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert value("triu(x, -1e30)", x=x).tolist() == x
        assert value("diag(x, 1e30)", x=x).tolist() == []
        with pytest.raises(LimitError):
            value("diag([1, 2], 1e30)")
        with pytest.raises(LimitError):
            value("repeat(1, 1e18)")

    def test_a_product_with_a_zero_among_many(self):
        x = np.full(20_000, 1.0)
        x[7] = 0.0
        with limits.within(max_elements=2_000_000):
            found = gradient("prod(x)", x)
        assert found.tolist() == (x == 0).astype(float).tolist()

    @pytest.mark.parametrize("program", ["prod(x)", "cumprod(x)[-1]", "det(diag(x))"])
    def test_where_a_product_is_too_small_for_all_its_digits_its_derivatives_have_them(self, program):
        found = gradient(program, np.array([3e-17, 1.5, 6.6e-308]))
        np.testing.assert_allclose(
            found if found.ndim == 1 else np.diag(found), [9.9e-308, 0.0, 4.5e-17], 1e-13, 1e-323
        )

    @pytest.mark.parametrize("n", range(1, 10))
    def test_the_second_derivatives_of_a_product_with_zeros(self, n):
        x = np.arange(n) % 4 * 1.5
        found = gradcli.compile("prod(x)").hessian({"x": x})["x,x"]
        pairs = [[np.prod(np.delete(x, [i, j])) * (i != j) for j in range(n)] for i in range(n)]
        np.testing.assert_allclose(np.zeros((n, n)) if found is None else found, pairs, rtol=1e-14)

    @staticmethod
    def differentiate(y: Any, x: Any, times: int) -> None:
        for _ in range(times):
            (y,) = grad(y, x, create_graph=True)

    def test_the_backward_pass_takes_steps(self):
        x = tensor(2.0, requires_grad=True)
        with limits.within(max_steps=40):
            grad(x * x * x, x)
            with pytest.raises(LimitError, match="more than 40 steps") as caught:
                self.differentiate(x**0.5 * gradcli.log(x), x, times=20)
        assert "--max-steps" in caught.value.hint

    def test_steps_of_others_count_too_and_without_a_limit_none(self):
        limits.charge_steps()
        with limits.within(max_steps=2):
            limits.charge_steps()
            limits.charge_steps()
            with pytest.raises(LimitError):
                limits.charge_steps()


class TestKinks:
    @pytest.mark.parametrize(
        ("program", "x"),
        [
            ("x//1", "1"),
            ("x%1", "1"),
            ("fmod(x, 1)", "1"),
            ("copysign(x, 1)", "0"),
            ("leaky_relu(x)", "0"),
            ("elu(x, 2)", "0"),
            ("norm(x, 3)", "[0, 0]"),
            ("sum(sort(x)*[1, 2])", "[3, 3]"),
            ("heaviside(x, 0.5)", "0"),
            ("round(x, 1)", "0.25"),
        ],
    )
    def test_they_are_warned_of(self, run, program, x):
        (warning,) = run("eval", program, f"x={x}", "--json").json["warnings"]
        assert (warning["code"], warning["phase"]) == ("nonsmooth", "backward")

    @pytest.mark.parametrize(
        ("program", "x"),
        [
            ("fmod(x, 1)", "0"),
            ("x%1", "0.5"),
            ("elu(x)", "0"),
            ("leaky_relu(x, 1)", "0"),
            ("norm(x, 3)", "[1, 2]"),
            ("sum(sort(x)*[1, 2])", "[3, 4]"),
        ],
    )
    def test_elsewhere_nothing_is_said(self, run, program, x):
        assert "warnings" not in run("eval", program, f"x={x}", "--json").json

    def test_the_slopes_on_the_left_can_be_differentiated_by(self):
        for name, expected in (("leaky_relu", [-1.0, 0.0]), ("elu", [math.expm1(-1.0), 0.0])):
            program = gradcli.compile(f"{name}(x, a)")
            _, found = program.value_and_grad({"x": [-1.0, 800.0], "a": [0.5, 0.5]}, grad_output=[1.0, 1.0])
            np.testing.assert_allclose(found["a"], expected, rtol=1e-15)


class TestSpellings:
    def test_methods_and_functions_take_the_keywords_of_others(self):
        x = tensor([[1.0, 2.0], [3.0, 5.0]])
        assert x.sum(dim=0).tolist() == [4.0, 7.0]
        assert gradcli.sum(x, dim=1, keepdim=True).tolist() == [[3.0], [8.0]]
        assert x.permute(dims=(1, 0)).tolist() == x.T.tolist()
        assert x.var(unbiased=True).item() == x.var(ddof=1).item() == x.var(correction=1).item()
        assert x.clip(a_min=2.0, a_max=3.0).tolist() == [[2.0, 2.0], [3.0, 3.0]]
        assert x.roll(shifts=1, dims=0).tolist() == [[3.0, 5.0], [1.0, 2.0]]
        assert x.tril(diagonal=-1).tolist() == [[0.0, 0.0], [3.0, 0.0]]
        assert x.diagonal(offset=1).tolist() == [2.0]
        assert x.norm(p=1).item() == 11.0
        assert gradcli.full([2], fill_value=3.0).tolist() == [3.0, 3.0]
        assert gradcli.linspace(0.0, 1.0, steps=3).tolist() == [0.0, 0.5, 1.0]

    def test_so_do_programs(self):
        assert value("sum(var(x, dim=0, unbiased=True))", x=[[1.0], [3.0]]) == 2.0
        assert value("sum(x.clip(a_min=0))", x=[-1.0, 2.0]) == 2.0

    def test_an_unknown_keyword_is_refused(self):
        with pytest.raises(TypeError):
            gradcli.sum(tensor([1.0]), dam=0)

    def test_functions_take_lists_of_numbers_as_operators_do(self):
        assert gradcli.sum([1.0, 2.0]) == 3.0
        assert gradcli.log([1.0, 1.0]).tolist() == [0.0, 0.0]
        assert gradcli.sum([[1, 2], [3, 4]], axis=[0, 1]) == 10
        assert gradcli.maximum(tensor([1.0, 4.0]), [2.0, 3.0]).tolist() == [2.0, 4.0]
        assert gradcli.concat([[1.0], tensor([2.0])]).tolist() == [1.0, 2.0]
        assert gradcli.einsum("i,i->", [1.0, 2.0], [3.0, 4.0]) == 11.0
        assert gradcli.norm([3.0, 4.0]) == 5.0
        assert gradcli.reshape([1.0, 2.0], [2, 1]).tolist() == [[1.0], [2.0]]

    def test_the_norm_of_frobenius(self):
        x = tensor([[1.0, 2.0], [2.0, 4.0]])
        assert x.norm(p="fro").item() == x.norm().item() == 5.0
        with pytest.raises(EvaluationError, match="there is no norm 'nuc'"):
            x.norm(p="nuc")

    def test_the_axis_of_a_norm_may_be_an_input(self, run):
        for axes in ("r", "(0, r)"):
            found = run("eval", f"sum(norm(p, 2, axis={axes}))", "p=[[1, 2], [3, 4]]", "r=1", "--json")
            written = run("eval", f"sum(norm(p, 2, axis={axes.replace('r', '1')}))", "p=[[1, 2], [3, 4]]", "--json")
            assert found.json["value"] == written.json["value"]

    def test_other_names(self):
        x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        data = x.numpy()
        assert gradcli.ones_like(x).tolist() == np.ones_like(data).tolist()
        assert gradcli.full_like(x, 2.0).tolist() == np.full_like(data, 2.0).tolist()
        assert gradcli.true_divide(x, 2.0).tolist() == (data / 2).tolist()
        assert x.diagonal().tolist() == np.diagonal(data).tolist()
        cube = np.arange(24.0).reshape(2, 3, 4)
        assert tensor(cube).diagonal(1).tolist() == np.diagonal(cube, 1).tolist()
        for name in ("vstack", "hstack"):
            for parts in ([data, data], [data[0], data[0]], [1.0, 2.0]):
                expected = getattr(np, name)(parts)
                assert getattr(gradcli, name)([tensor(p) for p in parts]).tolist() == expected.tolist()
        assert x.t().shape == (3, 2)
        assert x.repeat_interleave(2, axis=0).tolist() == data.repeat(2, axis=0).tolist()
        assert tensor([[1.0], [2.0], [3.0]]).expand(2, 3, -1).shape == (2, 3, 1)
        assert tensor([1.0, 2.0]).expand(3, -1).tolist() == [[1.0, 2.0]] * 3

    def test_t_is_still_a_name(self):
        assert value("t = 2*x; t*t", x=3.0) == 36.0
        assert value("t**2", t=3.0) == 9.0

    @pytest.mark.parametrize(("x", "y"), [(-2.0, 0.5), (0.0, 0.5), (3.0, 0.5), (NAN, 0.5)])
    def test_heaviside(self, x, y):
        for of in (lambda v: v, lambda v: [v]):
            np.testing.assert_array_equal(value("heaviside(x, y)", x=of(x), y=y), np.heaviside(of(x), y))

    @pytest.mark.parametrize("decimals", [0, 1, 2, -1])
    def test_round_to_decimals(self, decimals):
        x = [2.345, -17.86, 0.05, 25.0]
        np.testing.assert_array_equal(value(f"round(x, {decimals})", x=x), np.round(x, decimals))
        assert gradient(f"sum(round(x, {decimals}))", [2.345, -17.86]).tolist() == [0.0, 0.0]

    def test_round_to_too_many_decimals(self):
        with pytest.raises(EvaluationError, match="no number of decimals"):
            value("round(1.5, 400)")


class TestMessages:
    @pytest.mark.parametrize(("program", "hint"), [("max(x, 3)", "maximum(x, 3)"), ("min(x, 2)", "minimum(x, 2)")])
    def test_an_extreme_of_a_tensor_and_what_may_be_an_axis(self, program, hint):
        with pytest.raises(CallError) as caught:
            value(program, x=[1.0, 2.0])
        assert hint in caught.value.hint

    def test_an_extreme_of_a_tensor_and_what_is_no_axis(self):
        assert value("min(x, 1.5)", x=[1.0, 2.0]).tolist() == [1.0, 1.5]

    @pytest.mark.parametrize(
        ("program", "name"), [("sum(x, y)", "y"), ("k = y; sum(x, k)", "k"), ("u = x[0]; k = y; diff(u**3, u, k)", "k")]
    )
    def test_an_input_by_position_is_no_axis_and_no_order_whatever_it_is_called(self, program, name):
        with pytest.raises(GradcliError, match=f"^'{name}' is an input"):
            value(program, x=[1.0, 2.0], y=0.0)

    @pytest.mark.parametrize(
        "program", ["f(y) = sum(x, y); f(0) + y", "f(k) = sum(x, k); f(y)", "[sum(x, y) for y in [0]][0] + y"]
    )
    def test_a_parameter_or_variable_may_be_an_axis_when_an_input_has_its_name(self, program):
        assert value(program, x=[1.0, 2.0], y=0.0) == 3.0

    def test_items_of_different_shapes(self):
        with pytest.raises(ShapeError, match=r"^the items of a list have different shapes \[\] and \[2\]$"):
            value("[1, [2, 3]]")

    @pytest.mark.parametrize("dtype", ["complex256", "bfloat16", "nonsense"])
    def test_a_dtype_that_is_not_there(self, dtype):
        with pytest.raises(UsageError, match=dtype) as caught:
            tensor([1.0], dtype=dtype)
        assert caught.value.hint == (
            "the dtypes are bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8, uint8"
        )


# --- elements that functions over axes do not take

ROWWISE = "prod cumprod softmax log_softmax logsumexp norm std var max min sort median mean sum cumsum"


@pytest.mark.parametrize("function", ROWWISE.split())
@pytest.mark.parametrize("first", ["log(x)", "1/x", "sqrt(x)*0/x"])
def test_a_row_that_was_not_taken_stays_out_of_the_gradient(function, first):
    program = gradcli.compile(f"sum({function}({first}, axis=1)[1]*[1])")
    found = program.value_and_grad({"x": [[0.0, 3.0], [2.0, 5.0]]})[1]["x"]
    np.testing.assert_array_equal(found[0], [0.0, 0.0])
    alone = gradcli.compile(f"sum({function}({first}))").value_and_grad({"x": [2.0, 5.0]})[1]["x"]
    np.testing.assert_allclose(found[1], alone, rtol=1e-12, atol=1e-15)


# Functions that select, with an operand that is not selected and has an infinite derivative by x.
CHOICES = [
    ("maximum(log(x), x - 5)", 0.0, 1.0),
    ("minimum(1/x, x*5)", 0.0, 5.0),
    ("clip(1/x, 0, 3)", 0.0, 0.0),
    ("where(x > 0, log(x), x)", 0.0, 1.0),
    ("max(stack([log(x), x]))", 0.0, 1.0),
    ("min(stack([1/x, x + 3]))", 0.0, 1.0),
    ("median(stack([1/x, x + 1, 2*x + 2]))", 0.0, 2.0),
    ("sort(stack([1/x, x + 1, 2*x + 2]))[1]", 0.0, 2.0),
    ("stack([1/x, x])[1]", 0.0, 1.0),
    ("sum(tril(log(x)))", [[1.0, 0.0], [2.0, 4.0]], [[1.0, 0.0], [0.5, 0.25]]),
    ("sum(triu(log(x)))", [[1.0, 2.0], [0.0, 4.0]], [[1.0, 0.5], [0.0, 0.25]]),
    ("relu(log(x))", 0.0, 0.0),
    ("leaky_relu(2, 1/x)", 0.0, 0.0),
    ("elu(2, 1/x)", 0.0, 0.0),
    ("heaviside(2, 1/x)", 0.0, 0.0),
    ("norm(stack([sqrt(x), sqrt(x)]))", 0.0, 0.0),
    ("norm(stack([sqrt(x), sqrt(x)]), 3)", 0.0, 0.0),
    ("sum(svdvals(sqrt(x)*[[1, 0], [0, 1]]))", 0.0, 0.0),
]


@pytest.mark.parametrize(("program", "x", "expected"), CHOICES)
def test_what_is_not_chosen_stays_out_of_the_gradient(program, x, expected):
    np.testing.assert_array_equal(gradient(program, x), expected)


@pytest.mark.parametrize("product", ["W@x", "einsum('ij,j->i', W, x)", "einsum('ij,j,k->i', W, x, [1, 2])/3"])
def test_a_row_of_a_product_that_was_not_taken_stays_out_of_the_gradient(product):
    values = {"W": [[INF, 1.0], [2.0, 3.0]], "x": [5.0, 7.0]}
    found = gradcli.compile(f"({product})[1]").value_and_grad(values)[1]
    np.testing.assert_allclose(found["x"], [2.0, 3.0])
    np.testing.assert_allclose(found["W"], [[0.0, 0.0], [5.0, 7.0]])


class TestFlatFunctions:
    @pytest.mark.parametrize(
        ("program", "x"),
        [
            ("copysign(betaln(rsqrt(0.7), 1000), ndtri(x))", 1.635), ("floor(ndtri(x))", 1.635), ("sign(log(x))", -1.0),
            ("floor(sqrt(x))", 0.0), ("copysign(1, sqrt(x))", 0.0), ("floor_divide(ndtri(x), 2)", 1.6), ("round(acos(x))", 2.0),
        ],
    )  # fmt: skip
    def test_what_is_infinite_or_nan_below_them_is_not_reached(self, program, x):
        assert gradient(program, x) == 0
        assert gradcli.compile(program).derivatives({"x": x}, 2)[1:] == [0, 0]


class TestMatrixExponential:
    @pytest.mark.parametrize("size", [3.0, 30.0, 150.0])
    def test_it_loses_no_more_digits_than_its_operand_has(self, size):
        turn = np.array([[2.0, 1.0, 2.0], [-2.0, 2.0, 1.0], [1.0, 2.0, -2.0]]) / 3
        rates = np.array([1.0, 0.3, -0.9]) * size
        found = value("matrix_exp(A)", A=turn @ np.diag(rates) @ turn.T)
        expected = turn @ np.diag(np.exp(rates)) @ turn.T
        assert np.abs(found - expected).max() <= 1e-15 * size * np.abs(expected).max()

    def test_a_large_one_that_is_a_number(self):
        np.testing.assert_array_equal(value("matrix_exp(A)", A=np.diag([-1e300, 0.0])), np.diag([0.0, 1.0]))
        found = value("matrix_exp(A)", A=[[0.0, 1e200], [0.0, 0.0]])
        np.testing.assert_allclose(found, [[1.0, 1e200], [0.0, 1.0]], rtol=1e-15)

    @pytest.mark.parametrize(
        ("matrix", "expected"),
        [
            (np.diag([1e6, 0.0]), [[np.inf, 0], [0, 1]]),
            (np.diag([1e3, -1e3]), [[np.inf, 0], [0, 0]]),
            ([[1e6, -1e6], [0, 0]], [[np.inf, -np.inf], [0, 1]]),
            ([[0, 1e300], [0, 0]], [[1, 1e300], [0, 1]]),
            ([[0, 1e300], [0, -1]], [[1, 1e300 * -math.expm1(-1)], [0, math.exp(-1)]]),
            # An angle of 1e300 has no correct digit.
            ([[0, 1e300], [-1e300, 0]], [[np.nan, np.nan], [np.nan, np.nan]]),
            ([np.diag([1e6, 0.0]), np.diag([0.0, 1.0])], [np.diag([np.inf, 1]), np.diag([1, math.e])]),
        ],
    )  # fmt: skip
    def test_what_overflows_does_not_spoil_the_rest(self, matrix, expected):
        np.testing.assert_allclose(value("matrix_exp(A)", A=np.array(matrix, float)), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("x", "y", "spread"),
    [(1e200, 3e200, 1e200), (1e308, -1.5e308, 1.25e308), (1.7e308, 1.1e308, 3e307), (1e-160, 3e-160, 1e-160), (1e-308, 4e-308, 1.5e-308)],
)  # fmt: skip
def test_a_standard_deviation_has_its_digits_where_squares_have_none(run, x, y, spread):
    found = run("eval", "std([x, y])", f"x={x}", f"y={y}", "--json").json
    assert found["value"] == pytest.approx(spread, rel=4e-16)
    sign = 0.5 if x > y else -0.5
    assert found["grad"] == pytest.approx({"x": sign, "y": -sign}, rel=4e-16)


def test_standard_deviations_of_rows_keep_their_digits_beside_one_that_is_scaled(run):
    rows = [[0.1, 0.7, 0.4], [1e200, 3e200, 2e200], [0.1, 0.1, 0.1]]
    found = run("eval", "std(A, 1)", f"A={rows}", "--wrt", "", "--json").json["value"]
    assert found == [run("eval", "std(v)", f"v={row}", "--json").json["value"] for row in rows]
    assert found[1] == pytest.approx(math.sqrt(2 / 3) * 1e200, rel=1e-15)


class TestLogarithmOfGamma:
    @pytest.mark.parametrize("path", ["number", "array"])
    @pytest.mark.parametrize("step", [1e-3, -1e-9, 2.0**-40, 2.0**-52])
    def test_it_has_its_digits_at_its_zeros(self, step, path):
        for zero in (1.0, 2.0):
            x = zero + step
            exact = float(mpmath.loggamma(mpmath.mpf(x)))
            found = value("lgamma(x)", x=x) if path == "number" else value("lgamma(x)", x=np.array([x, 3.0]))[0]
            assert found == pytest.approx(exact, rel=1e-15, abs=0)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300])
def test_norms_of_the_smallest_numbers_have_derivatives(size):
    compiled = gradcli.compile("norm([x, 0])")
    for _ in range(3):
        np.testing.assert_allclose(compiled.value_and_grad({"x": size})[1]["x"], 1.0, rtol=1e-14)
        np.testing.assert_allclose(compiled.derivatives({"x": size}, 2)[:2], [size, 1.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("program", "q"),
    [
        ("var(v, correction=q)", 0.3), ("std(v, correction=q)", 0.3), ("torch.std(v, correction=q)", 1.5),
        ("norm(v, q)", 1.5), ("norm(v, q)", 2.0), ("norm(v, ord=q)", -0.7), ("cdist([v], [1.5*v**2], p=q)[0, 0]", 2.5),
        ("cross_entropy(v, v/4, label_smoothing=q)", 0.2), ("cross_entropy(v, 1, label_smoothing=q)", 0.0),
    ],
)  # fmt: skip
def test_parameters_that_are_numbers_have_derivatives(program, q):
    values = {"v": np.array([0.3, 1.2, 2.5])}
    compiled = gradcli.compile(program)
    below, above = (compiled(**values, q=q + step) for step in (-1e-6, 1e-6))
    value, grad = compiled.value_and_grad({**values, "q": q})
    assert grad["q"] == pytest.approx((above - below) / 2e-6, rel=1e-6)
    assert value == pytest.approx((above + below) / 2, rel=1e-9)


@pytest.mark.parametrize(
    "chosen",
    [
        "where(q == 1, q, argmax([1, 2, 3]))",
        "where(q == 1, q, q == 0.5) + 1",
        "max(q, argmax([1, 2, 3]))",
        "min(9 + q, argmax([1, 2, 3]))",
        "fmax(q, argmax([1, 2, 3]))",
        "clip(q, argmax([1, 2, 3]), 7)",
    ],
)
def test_a_whole_number_that_is_chosen_beside_a_float_is_differentiated_as_one(chosen):
    """The derivative at the integer is -1/4 as at the float, not 0."""
    program = gradcli.compile(f"y = {chosen}\ndiff(1/y, y) + x")
    value, gradients = program.value_and_grad({"x": 0.5, "q": 0.5})
    assert value == program(x=0.5, q=0.5) == 0.25
    assert gradients["x"] == 1.0


@pytest.mark.parametrize("program", ["logdet(A)", "slogdet(A)[1]"])
def test_the_logarithm_of_the_determinant_of_a_singular_matrix(run, program):
    outcome = run("eval", program, "A=[[1, 2], [2, 4]]", "--json")
    assert outcome.status == 0
    assert outcome.json["value"] == "-Infinity"
    assert outcome.json["grad"]["A"] == [["Infinity", "-Infinity"], ["-Infinity", "Infinity"]]


def test_a_singular_matrix_beside_a_regular_one_has_its_own_logarithm(run):
    found = run("eval", "sum(logdet(A))", "A=[[[1, 2], [2, 4]], [[2, 0], [0, 1]]]", "--json").json["grad"]["A"]
    assert found == [[["Infinity", "-Infinity"], ["-Infinity", "Infinity"]], [[0.5, 0.0], [0.0, 1.0]]]


@pytest.mark.parametrize(
    ("program", "x", "expected"),
    [
        ("stack([x**2, x*log(-1)])", 3.0, [6.0, NAN]),
        ("x*log(x)", [1.0, -1.0], [[1.0, 0.0], [0.0, NAN]]),
        ("stack([x[0]**2, x[0]*log(x[1]), x[0]*x[1]])", [1.0, -1.0], [[2.0, 0.0], [NAN, -1.0], [-1.0, 1.0]]),
        ("stack([sum(x), sum(x*log(x))])", [1.0, 0.5, -1.0], [[1.0, 1.0, 1.0], [1.0, 1 - math.log(2), NAN]]),
    ],
)
def test_a_row_of_a_jacobian_keeps_out_what_other_rows_are_made_of(run, program, x, expected):
    found = run("eval", program, f"x={x}", "--jacobian", "--json").json["jacobian"]["x"]
    np.testing.assert_allclose(np.array(found, float), expected)
    compiled = gradcli.compile(program)
    for _ in range(3):
        np.testing.assert_allclose(compiled.jacobian({"x": x})["x"], expected)


@pytest.mark.parametrize(
    ("program", "x", "result", "slopes"),
    [
        ("prod(x)", [1e200, 1e200, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0, 0.0]),
        ("prod(x)", [0.0, 0.0, 1e200, 1e200], 0.0, [0.0, 0.0, 0.0, 0.0]),
        ("prod(x)", [1e200, 1e200, 0.0], 0.0, [0.0, 0.0, INF]),
        ("prod(x)", [1e-200, 1e-200, 1e200, 1e200], 1.0, [1e200, 1e200, 1e-200, 1e-200]),
        ("prod(x)", [1e200, INF, 0.0], NAN, [NAN, 0.0, INF]),
        ("sum(cumprod(x)[2:])", [1e200, 1e200, 0.0, 0.0], 0.0, [0.0, 0.0, INF, 0.0]),
        ("sum(cumprod(x)[2:])", [1e-200, 1e-200, 1e200, 1e200], 1.0, [1e200, 1e200, 1e-200, 1e-200]),
        ("sum(prod(x, 1))", [[1e200, 1e200, 0.0], [1.0, 2.0, 3.0]], 6.0, [[0.0, 0.0, INF], [6.0, 3.0, 2.0]]),
    ],
)
def test_products_that_are_too_large_on_their_way(program, x, result, slopes):
    compiled = gradcli.compile(program)
    for _ in range(3):
        found, by = compiled.value_and_grad({"x": x})
        np.testing.assert_allclose(found, result, 1e-15)
        np.testing.assert_allclose(by["x"], slopes, 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("A", [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]]])
@pytest.mark.parametrize("product", ["U@diag(s)@V", "(U*s)@V"])
def test_what_singular_vectors_and_values_make_of_a_singular_matrix_is_smooth(run, A, product):  # noqa: N803
    outcome = run("eval", f"U, s, V = svd(A); sum({product})", f"A={A}", "--order", "2", "--json").json
    np.testing.assert_allclose(outcome["grad"]["A"], np.ones_like(A), 1e-13)
    np.testing.assert_allclose(outcome["derivatives"]["A,A"], 0.0, atol=1e-12)


# The identity, almost equal eigenvalues, a rotation, a tall matrix of rank 1, a wide one, and zeros.
_EQUAL_VALUES = {
    "identity": np.eye(2), "rounded": np.ones((3, 3)) + np.eye(3), "turn": np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "tall": np.ones((3, 2)), "wide": np.eye(3)[:2], "zeros": np.zeros((2, 2)),
}  # fmt: skip


@pytest.mark.cases(2)
@pytest.mark.parametrize(("values", "product"), [("s", "B"), ("s**3 - s", "B@B.T@B - B")])
@pytest.mark.parametrize("name", _EQUAL_VALUES)
def test_what_turns_vectors_of_equal_singular_values(run, name, values, product):
    matrix = _EQUAL_VALUES[name]
    text = json.dumps(matrix.tolist())
    weights = json.dumps((np.arange(matrix.size).reshape(matrix.shape) + 1.0).tolist())
    decomposed = f"U, s, V = svd(B, full_matrices=False); sum({weights}*(U@diag({values})@V))"
    words = (f"B={text}", "--order", "2" if matrix.size < 6 else "1", "--json")
    found, expected = (run("eval", p, *words).json for p in (decomposed, f"sum({weights}*({product}))"))
    assert "warnings" not in found
    np.testing.assert_allclose(found["grad"]["B"], expected["grad"]["B"], atol=1e-12)
    for key, second in expected.get("derivatives", {}).items():
        np.testing.assert_allclose(found["derivatives"][key], second, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["identity", "zeros"])
@pytest.mark.parametrize(("values", "product"), [("w**2", "S@S"), ("exp(w)", "expm(S)")])
def test_what_turns_eigenvectors_of_equal_values(run, name, values, product):
    matrix = json.dumps(_EQUAL_VALUES[name].tolist())
    decomposed = f"w, V = eigh(B); (V@diag({values})@V.T)[0]@V@V.T[:, 1]"
    direct = f"S = (B + B.T)/2; ({product})[0, 1]"
    words = (f"B={matrix}", "--order", "2", "--json")
    found, expected = (run("eval", p, *words).json for p in (decomposed, direct))
    assert "warnings" not in found
    np.testing.assert_allclose(found["grad"]["B"], expected["grad"]["B"], atol=1e-12)
    np.testing.assert_allclose(found["derivatives"]["B,B"], expected["derivatives"]["B,B"], atol=1e-11)


@pytest.mark.parametrize(
    "program",
    ["w, V = eigh(A); V[0, 0]**2", "w, V = eigh(A); w[0]", "U, s, V = svd(A); sum(s*[1, 2])", "eigvalsh(A)[0]"],
)
def test_what_tells_equal_eigenvalues_apart_is_warned_of(run, program):
    for matrix in ("[[1, 0], [0, 1]]", "[[1, 1e-17], [1e-17, 1]]"):
        assert run("eval", program, f"A={matrix}", "--json").json["warnings"]


@pytest.mark.slow
def test_recordings_of_equal_eigenvalues():
    compiled = gradcli.compile("w, V = eigh(A); sum(V@diag(w**2)@V.T)")
    for matrix in (np.eye(2), np.array([[1.0, 0.5], [0.5, 2.0]]), np.eye(2)):
        ones = np.ones((2, 2))
        expected = matrix @ ones + ones @ matrix
        np.testing.assert_allclose(compiled.value_and_grad({"A": matrix})[1]["A"], expected, 1e-12)
        np.testing.assert_allclose(compiled.jacobian({"A": matrix})["A"], expected, 1e-12)
        rows = compiled.value_and_grad({"A": np.stack([matrix, matrix])}, rows=True)[1]["A"]
        np.testing.assert_allclose(rows[1], expected, 1e-12)


@pytest.mark.parametrize(
    ("program", "shape"),
    [
        ("U, s, V = svd(A, full_matrices=False); sum(s) + sum(U) + sum(V)", (0, 3)),
        ("w, V = eigh(A); sum(w) + sum(V)", (0, 0)),
        ("sum(svdvals(A)) + sum(eigvalsh(A@A.T))", (0, 3)),
    ],
)
def test_matrices_without_elements_have_no_values_that_are_equal(program, shape):
    value, found = gradcli.compile(program).value_and_grad({"A": np.zeros(shape)})
    assert value == 0.0
    assert found["A"].shape == shape
