"""Tests the meaning of programs in the expression language, through the Python interface."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import gradcli
from gradcli.errors import CallError, EvaluationError, ShapeError


def value(program, **values):
    return gradcli.compile(program)(**values)


def grads(program, **values):
    return gradcli.compile(program).value_and_grad(values)[1]


def test_products_with_the_jacobian_in_a_program():
    given = {"x": [1.0, 2.0], "v": [1.0, 0.5], "u": [1.0, 2.0, 3.0]}
    y, full = "[x[0]*x[1], sin(x[0]), x[1]]", "jacobian([x[0]*x[1], sin(x[0]), x[1]], x)"
    for short, long in ((f"u @ jvp({y}, x, v)", f"u @ ({full} @ v)"), (f"vjp({y}, x, u) @ v", f"u @ {full} @ v")):
        assert value(short, **given) == pytest.approx(value(long, **given), rel=1e-15)
        for name, derivative in grads(long, **given).items():
            assert grads(short, **given)[name] == pytest.approx(derivative, rel=1e-15)
    # One pass backward and one through it, not 10,000.
    wide = np.linspace(0.0, 1.0, 10_000)
    assert value("sum(jvp(x**3, x, 2))", x=wide) == pytest.approx(6 * np.sum(wide**2))


def test_products_with_the_jacobian_take_what_fits(run):
    assert run("eval", "jvp(x**3, x, v)", "x=2", "v=3", "--order", "2", "--json").json["derivatives"]["x,v"] == 12.0
    assert run("diff", "vjp(x**3*y, x, v)", "--wrt", "y").out == "3*x**2*v\n"
    assert "has the shape of x, [2], and this has shape [3]" in run("eval", "jvp(x, x, [1,2,3])", "x=[1,2]").err
    assert "'jvp' takes no prefix of a library" in run("eval", "f(x) = x; jax.jvp(f, (x,), (x,))", "x=1").err


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("1; 2; 3", 3.0),
        ("a = 2\nb = a*3 # a comment\n\nb + 1", 7.0),
        ("(1 +\n 2)", 3.0),
        ("[1,\n 2].sum()", 3.0),
        ("1_000 + .5 + 1.5e1", 1015.5),
        ("-2**2", -4.0),
        ("2**-1", 0.5),
        ("2**3**2", 512.0),
        ("2^3", 8.0),
        ("7 // 2 + 7 % 4 + -7 % 4", 7.0),
        ("1 < 2 < 3", 1.0),
        ("1 < 2 > 3", 0.0),
        ("not 1 == 2", 1.0),
        ("0 or 5", 5.0),
        ("0 and 5", 0.0),
        ("3 if 1 > 2 else 4 if 0 else 5", 5.0),
        ("pi + math.tau + π", 4 * math.pi),
        ("e", math.e),
        ("pi = 3; pi", 3.0),
        ("np.log(torch.exp(2.5))", 2.5),
        ("math.sqrt(np.pi) ** 2", math.pi),
        ("[[1, 2], [3, 4]].T[0, 1]", 3.0),
        ("[1, 2, 3].shape[0] + [[1, 2]].ndim + [[1, 2]].size", 7.0),
        ("x = [1, 2]; sum(x.astype(x.dtype)*np.array([3, 4], dtype=x.dtype)) if x.dtype == np.float64 else 0", 11.0),
        ("(1 < 2).dtype == 'bool'", 1.0),
        ("torch.sum([[1, 2], [3, 4]], dim=0, keepdim=True)[0, 1]", 6.0),
        ("np.std([1, 2, 3], ddof=1)", 1.0),
        ("if 1 > 2 { y = 1 } else if 2 > 1 { y = 2 } else { y = 3 }; y", 2.0),
        ("s = 0; for i in range(5) { s = s + i }; s", 10.0),
        ("s = 0; for i in range(1, 10, 3) { s = s + i }; s", 12.0),
        ("s = 0\nfor v in [1, 2, 3] {\n  s = s + v**2\n}\ns", 14.0),
        ("n = 0; while n < 7 { n = n + 2 }; n", 8.0),
        ("f(a, b) = a - b; f(5, b=2)", 3.0),
        ("fact(n) = 1 if n <= 1 else n*fact(n - 1); fact(10)", 3628800.0),
        ("even(n) = 1 if n == 0 else odd(n - 1); odd(n) = 0 if n == 0 else even(n - 1); even(10)", 1.0),
        ("sum(arange(4)) + sum(eye(2)) + sum(ones(2, 3)) + sum(full([2], 3))", 20.0),
        ("sum(concat([[1, 2], [3]]))", 6.0),
        ("len2(v) = sqrt(v@v); len2([3, 4])", 5.0),
        ("x = [1, 2, 3, 4]; x[1:3].sum() + x[-1] + x[::2].sum() + x[[0, 0]].sum()", 15.0),
        ("x = [1, 5, 3]; x[x > 2].sum()", 8.0),
        ("1/0", math.inf),
        ("-1/0", -math.inf),
        ("0*inf", math.nan),
        ("10**400", math.inf),
        ("y = 4", 4.0),
    ],
)
def test_value(program, expected):
    assert value(program) == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_functions_see_the_names_around_them():
    assert grads("f(a) = a*k; f(x)", x=2.0, k=3.0) == {"x": 3.0, "k": 2.0}


def test_a_hand_written_derivative_is_used():
    assert grads("f(a) = a**2 backward(g) = 100*g; f(x)", x=3.0) == {"x": 100.0}


def test_a_hand_written_derivative_is_differentiable_again():
    program = gradcli.compile("f(a, b) = a**b backward(g) = g*b*a**(b - 1), g*a**b*log(a)\nlog(f(x, q))")
    plain = gradcli.compile("log(x**q)")
    for key, expected in plain.derivatives({"x": 5.0, "q": 3.0}, 3).items():
        assert program.derivatives({"x": 5.0, "q": 3.0}, 3)[key] == pytest.approx(expected, rel=1e-12), key


def test_gradients_go_through_the_branch_that_ran():
    program = "y = x; while abs(y) < 100 { y = y*2 }; y"
    assert grads(program, x=3.0) == {"x": 64.0}
    assert grads(program, x=99.0) == {"x": 2.0}


@pytest.mark.parametrize(
    ("program", "x", "expected"),
    [
        ("diff(x**3, x)", 2.0, 12.0),
        ("diff(x**3, x, 2)", 2.0, 12.0),
        ("diff(x**3, x, 4)", 2.0, 0.0),
        ("diff(x**3, x, 0)", 2.0, 8.0),
        ("u = x**2; diff(sin(u)*x, u)", 2.0, 2 * math.cos(4)),
        ("g(t) = diff(t**3, t); g(x) + g(2)", 1.0, 15.0),
        ("f(a, b) = diff(a*b, a); f(x, x)", 3.0, 3.0),
        ("y = x; diff(y*x, y)", 3.0, 3.0),
        ("k = 3; diff(k**2*x, k)", 2.0, 12.0),
        ("y = 5; diff(y, x)", 2.0, 0.0),
        ("s = 0; for i in range(4) { s = s + diff(x**i, x) }; s", 2.0, 0 + 1 + 4 + 12),
        ("(x**2).diff(x)", 2.0, 4.0),
    ],
)
def test_diff(program, x, expected):
    assert value(program, x=x) == pytest.approx(expected, rel=1e-14)


def test_diff_is_itself_differentiable():
    assert grads("diff(x**4, x)", x=2.0) == {"x": 48.0}
    assert grads("v = diff(x**2*q, x); v**2", x=2.0, q=3.0) == {"x": 144.0, "q": 96.0}


def test_diff_inside_a_hand_written_derivative():
    program = "h(t) = diff(sin(t), t); f(a) = sin(a) backward(g) = g*h(a); f(x)"
    assert grads(program, x=0.3)["x"] == pytest.approx(math.cos(0.3), rel=1e-15)


def test_jacobian_and_hessian_in_a_program():
    x = np.array([1.0, 2.0])
    assert value("jacobian([x[0]*x[1], x[0]], x)", x=x).tolist() == [[2.0, 1.0], [1.0, 0.0]]
    assert value("hessian(x[0]**2*x[1], x)", x=x).tolist() == [[4.0, 2.0], [2.0, 0.0]]
    assert grads("sum(hessian(sum(x**3), x))", x=x)["x"].tolist() == [6.0, 6.0]


def test_detach_and_its_alias():
    assert grads("x*detach(x)", x=3.0) == {"x": 3.0}
    assert grads("x*stop_gradient(x)", x=3.0) == {"x": 3.0}


def test_a_branch_that_is_not_taken_stays_out_of_the_gradient():
    for program in (
        "where(x > 0, sqrt(x), 0)", "where(x > 0, x*log(x), 0)", "where(x > 0, exp(1/x), 0*x)",
        "clip(log(x), -1, 1)", "sqrt(x) if x > 0 else 0*x", "maximum(sqrt(x), 1)", "[sqrt(x), x][1]*0",
    ):  # fmt: skip
        assert grads(program, x=0.0)["x"] == 0.0, program
    assert grads("sum(where(x > 0, sqrt(x), 0))", x=np.array([0.0, 4.0]))["x"].tolist() == [0.0, 0.25]


@pytest.mark.parametrize(
    "program",
    [
        "y = sqrt(x); where(x < 1, 1, y) + 0*y",
        "y = sqrt(x); z = 0*y; where(x < 1, 1, y) + z",
        "y = sqrt(x); z = where(x < 1, 1, y); 0*y + z",
        "y = sqrt(x); where(x < 1, 1, 2*y) + where(x < 1, y, 1)*0",
    ],
)
def test_a_zero_that_is_computed_stays_one_beside_those_of_a_branch_that_is_not_taken(program):
    assert math.isnan(grads(program, x=0.0)["x"])
    several = "; sum(".join(program.rsplit("; ", 1)) + ")"
    np.testing.assert_array_equal(grads(several, x=np.array([0.0, 4.0]))["x"][0], math.nan)


def test_a_branch_that_is_not_taken_stays_out_of_sums_over_it():
    found = grads("sum(where(x > 0, a*log(x), 0))", x=np.array([0.0, 2.0]), a=3.0)
    assert found["a"] == math.log(2.0)
    assert found["x"].tolist() == [0.0, 1.5]


@pytest.mark.parametrize("untaken", [math.nan, math.inf])
@pytest.mark.parametrize(
    "program",
    [
        "x @ w",
        "(x**2) @ w",
        "einsum('ij,j->i', x, w)",
        "einsum('ij,ij,j->i', x, x, w)",
        "prod(x, axis=1)*sum(w)",
        "prod(x, axis=1, keepdims=True)[:, 0]*sum(w)",
        "cumprod(x, axis=1) @ w",
        "softmax(x, axis=1) @ w",
        "norm(x, axis=1)*sum(w)",
        "logsumexp(x, axis=1)*sum(w)",
        "std(x, axis=1)*sum(w)",
        "median(x, axis=1)*sum(w)",
        "sort(x, axis=1) @ w",
    ],
)
def test_a_row_that_is_not_taken_stays_out_of_the_gradient(program, untaken):
    x = np.array([[1.0, 2.0, 4.0], [untaken, 1.0, 3.0]])
    w = np.array([3.0, -4.0, 0.5])
    masked = gradcli.compile(f"sum(where([1, 0], {program}, 0))").value_and_grad({"x": x, "w": w})
    alone = gradcli.compile(f"sum({program})").value_and_grad({"x": x[:1], "w": w})
    np.testing.assert_allclose(masked[0], alone[0], rtol=1e-15)
    np.testing.assert_allclose(masked[1]["w"], alone[1]["w"], rtol=1e-14)
    np.testing.assert_allclose(masked[1]["x"], [*alone[1]["x"], [0.0, 0.0, 0.0]], rtol=1e-14)


def test_a_row_that_is_taken_keeps_its_nan():
    x = np.array([[1.0, 2.0], [math.nan, 1.0]])
    _, found = gradcli.compile("sum(where([1, 1, 0], concat([x, [[1, 1]]]) @ w, 0))").value_and_grad(
        {"x": x, "w": [1.0, 2.0]}
    )
    np.testing.assert_array_equal(found["w"], [math.nan, 3.0])


def test_a_branch_that_is_not_taken_stays_out_of_higher_derivatives():
    found = gradcli.compile("where(x > 0, sqrt(x)*x, x**3)").derivatives({"x": 0.0}, 3)
    assert found == [0.0, 0.0, 0.0, 6.0]


def test_truth_values_count():
    assert grads("sum((x > 1)*x)", x=np.array([1.0, 2.0, 3.0]))["x"].tolist() == [0.0, 1.0, 1.0]
    assert value("sum(x > 1)", x=np.array([1.0, 2.0, 3.0])) == 2.0


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("[x>0]", "a mask of shape [1] does not fit a tensor of shape [2, 3] at axis 0"),
        ("[x>0, x>1, x>2]", "a mask of shape [3] does not fit a tensor of shape [2, 3] at axis 0"),
        (":, [x>0, x>1]", "a mask of shape [2] does not fit a tensor of shape [2, 3] at axis 1"),
        ("..., None, [x>0, x>1]", "a mask of shape [2] does not fit a tensor of shape [2, 3] at axis 1"),
        ("A[:, :2] > x", "a mask of shape [2, 2] does not fit a tensor of shape [2, 3] at axis 0"),
        # It would be the second row of a Python list, and a new axis of an array.
        ("x>0", "True is no index"),
        ("0, x>0", "True is no index"),
        ("x>0, x>0, x>0", "True is no index"),
    ],
)
def test_a_mask_has_the_shape_of_what_it_is_for(index, message):
    leaves = {"A": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "x": 1.0}
    for program in (f"sum(A[{index}])", f"B = A + x\nB[{index}] = 0\nsum(B)"):
        with pytest.raises(ShapeError, match=re.escape(message)):
            gradcli.compile(program).value_and_grad(leaves)


def test_a_mask_may_be_written_out():
    x = np.array([1.0, 2.0, 4.0])
    assert grads("x[[True, False, True]].sum()", x=x)["x"].tolist() == [1.0, 0.0, 1.0]
    assert grads("x[[0 > 1, 1 > 0, 1 > 0]].sum()", x=x)["x"].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "call",
    ["sum(A, axis=[x>0])", "flip(A, (x>0,))", "roll(A, x>0)", "zeros(x>0)", "take(A, [x>0])", "A.permute(x>0, 0)"],
)
def test_a_truth_value_is_no_axis_size_or_place(call):
    with pytest.raises(EvaluationError, match="whole number"):
        value(call, **({"A": np.eye(2)} if "A" in call else {}), x=1.0)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("A[()]", [[1.0, 2.0], [3.0, 4.0]]),
        ("k = (0, 1); A[k]", 2.0),
        ("k = 0, 1\nB = A*1\nB[k] = 9\nB", [[1.0, 9.0], [3.0, 4.0]]),
        ("k = [0, 1]; A[k]", [[1.0, 2.0], [3.0, 4.0]]),
        ("k = ((0, 1), (1, 0)); A[k]", [2.0, 3.0]),
        ("sum(A[k] for k in [(0, 1), (1, 1)])", 6.0),
    ],
)
def test_a_tuple_is_the_whole_index_and_a_list_is_positions(program, expected):
    np.testing.assert_array_equal(gradcli.compile(program)(A=[[1.0, 2.0], [3.0, 4.0]]), expected)


@pytest.mark.parametrize("program", ["torch.abs(x[0, :, [0, 1]])", "y = torch.abs(x); y[0, :, [0, 1]] = 1; y"])
def test_an_index_that_pytorch_and_numpy_order_differently_is_refused_among_names_of_pytorch(program):
    x = np.arange(24.0).reshape(2, 3, 4)
    with pytest.raises(ShapeError, match="PyTorch leaves the axis"):
        gradcli.compile(program)(x=x)
    np.testing.assert_array_equal(gradcli.compile("np.abs(x[0, :, [0, 1]])")(x=x), x[0, :, [0, 1]])
    np.testing.assert_array_equal(gradcli.compile("torch.abs(x[0][:, [0, 1]])")(x=x), x[0][:, [0, 1]])


def test_a_parenthesised_index_is_an_index_of_each_axis():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert value("x[(0, 1)]", x=x) == 2.0
    assert value("x[[0, 1]]", x=x).tolist() == x.tolist()


@pytest.mark.parametrize("program", ["slope(y, t) = diff(y, t); slope(x**2, x)", "y = x**2; u = x; diff(y, u)"])
def test_diff_by_a_name_given_too_late_is_an_error_and_not_zero(program):
    with pytest.raises(RuntimeError, match="made before the second got this name"):
        value(program, x=gradcli.tensor(3.0, requires_grad=True))


def test_a_hand_written_derivative_may_differentiate():
    program = "h(x) = x**3; f(x) = h(x) backward(g) = g*diff(h(x), x); f(x)"
    assert gradcli.compile(program).value_and_grad({"x": 2.0}) == (8.0, {"x": 12.0})


def test_a_wrong_gradient_is_named_by_its_number():
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        grads("f(x) = sum(x) backward(g) = g*[1, 2, 3]; f(x)", x=[1.0, 2.0])


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("a, b = 2, x; a*b", 6.0),
        ("a, b = x, 2*x; a, b = b, a; a**2*b", 108.0),
        ("a, b = [x, 2]; a*b", 6.0),
        ("(a, b) = (x, 2); a*b", 6.0),
        ("for i in range(2) { a, b = i, x }; a + b", 4.0),
        ("Q, R = qr([[x, 1], [0, 2]]); sum(Q@R)", 6.0),
        ("sum(qr([[x, 1], [0, 2]])[0]**2)", 2.0),
        ("w, V = np.linalg.eigh([[x, 0], [0, 1]]); w[1]", 3.0),
        ("eigh([[x, 0], [0, 1]])[-2][0]", 1.0),
    ],
)
def test_several_values_have_names_of_their_own(program, expected):
    assert gradcli.compile(program)(x=3.0) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("qr([[x]])", "the value of the program needs a number or a tensor, and this is 2 tensors"),
        ("y = qr([[x]]); y + 1", "needs a number or a tensor, and this is 2 tensors"),
        ("log(qr([[x]]))", "'log' needs a number or a tensor, and this is 2 tensors"),
        ("qr([[x]]) + 1", "needs a number or a tensor, and this is 2 tensors"),
        ("qr([[x]])[2]", "taken by its number, from 0 to 1"),
        ("qr([[x]])[0, 1]", "taken by its number, from 0 to 1"),
        ("a, b, c = qr([[x]]); a", "3 names do not fit 2 tensors"),
        ("a, b = [x, 1, 2]; a", "2 names do not fit 3 values"),
        ("a, b = x; a", "2 names do not fit a tensor of shape"),
        ("a, b = None, x; a + b", "needs a number or a tensor, and this is no value"),
    ],
)
def test_several_values_where_one_is_needed_are_an_error(program, message):
    with pytest.raises(EvaluationError, match=re.escape(message)):
        gradcli.compile(program)(x=3.0)


def test_an_own_function_may_take_the_name_of_another():
    assert value("sin(a) = 2*a; sin(3)") == 6.0


def test_a_list_is_an_argument_like_any_other_of_an_own_function():
    assert value("f(tensors) = sum(tensors); f([1, 2])") == 3.0
    with pytest.raises(CallError, match="takes no arguments, and 1 were given"):
        value("f() = 2; f([])")


def test_the_pseudo_inverse_of_whole_numbers():
    assert value("pinv(argmax([[[0, 1], [0, 1]]], axis=-1))[0, 0]") == pytest.approx(0.5)


def test_results_come_back_as_their_inputs_came():
    program = gradcli.compile("2*x")
    assert type(program(x=2.0)) is float
    assert isinstance(program(x=np.ones(2)), np.ndarray)
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    program(x=x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


class TestCompiled:
    def test_float32_inputs_stay_float32(self):
        x = np.ones(2, dtype="float32")
        assert gradcli.compile("x + [0.1, 0.2]")(x=x).dtype == "float32"
        assert gradcli.compile("np.array([0.1, 0.2], dtype=x.dtype)")(x=x).dtype == "float32"
        assert gradcli.compile("x + [0.1, 0.2]").value_and_grad({"x": x}, grad_output=x)[1]["x"].dtype == "float32"
        assert gradcli.compile("x*k + [0.1, 0.2]")(x=x, k=2.0).dtype == "float32"

    def test_an_input_may_have_any_name(self):
        assert gradcli.compile("self*2")(self=3.0) == 6.0

    def test_results_are_not_the_inputs(self):
        x = np.ones((2, 2))
        for program in ("x", "x.T", "x[0]", "reshape(x, 4)"):
            result = gradcli.compile(program)(x=x)
            result[...] = 7.0
            assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        gradient = gradcli.compile("sum(x)").value_and_grad({"x": x})[1]["x"]
        gradient += 1.0

    def test_value_and_grad(self):
        f = gradcli.compile("log(x**q)")
        assert f(x=5.0, q=3.0) == pytest.approx(4.828313737302301, rel=1e-15)
        found, gradient = f.value_and_grad({"x": 5.0, "q": 3.0}, wrt=("q",))
        assert found == pytest.approx(4.828313737302301, rel=1e-15)
        assert gradient == {"q": 1.6094379124341003}

    def test_grad_output(self):
        f = gradcli.compile("x**2")
        assert f.value_and_grad({"x": [1.0, 2.0]}, grad_output=[1.0, 10.0])[1]["x"].tolist() == [2.0, 40.0]
        with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
            f.value_and_grad({"x": [1.0, 2.0]})

    def test_jacobian_and_hessian(self):
        f = gradcli.compile("[x*q, x]")
        assert {k: v.tolist() for k, v in f.jacobian({"x": 2.0, "q": 3.0}).items()} == {"x": [3, 1], "q": [2, 0]}
        second = gradcli.compile("sum(x**2)*q").hessian({"x": [1.0, 2.0], "q": 3.0})
        assert list(second) == ["x,x", "x,q", "q,q"]
        assert second["x,x"].tolist() == [[6, 0], [0, 6]]
        assert second["x,q"].tolist() == [2, 4]
        assert second["q,q"] == 0.0

    def test_derivatives(self):
        assert gradcli.compile("x**3").derivatives({"x": 2.0}, order=4) == [8.0, 12.0, 12.0, 6.0, 0.0]

    def test_none_is_for_what_does_not_matter(self):
        assert gradcli.compile("x if 1 > 0 else y").value_and_grad({"x": 1.0, "y": 2.0})[1] == {"x": 1.0, "y": None}

    def test_names_are_checked(self):
        f = gradcli.compile("alpha*2")
        with pytest.raises(gradcli.GradcliError, match="does not read 'alhpa'") as caught:
            f(alhpa=1.0)
        assert caught.value.hint == "did you mean 'alpha'?"
        with pytest.raises(NameError, match="unknown name 'alpha'"):
            f()

    def test_syntax_errors_have_a_place(self):
        with pytest.raises(ValueError, match="never closed") as caught:
            gradcli.compile("log(x")
        assert caught.value.position == (1, 4)

    def test_a_program_runs_many_times(self):
        f = gradcli.compile("x**2 if x > 0 else -x")
        assert [f(x=float(v)) for v in (-2, 3)] == [2.0, 9.0]


def test_importing_loads_no_array_library():
    import subprocess
    import sys

    code = (
        "import sys, gradcli, gradcli.cli.main\n"
        "print([m for m in ('numpy', 'scipy', 'lark', 'rich') if m in sys.modules])\n"
        "gradcli.compile('log(x**q)').value_and_grad({'x': 5.0, 'q': 3.0})\n"
        "print([m for m in ('numpy', 'scipy', 'lark', 'rich') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
