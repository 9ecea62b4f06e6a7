"""Tests compiled Python functions: called directly at first, and from recordings later."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
import pytest

import gradcli
from gradcli import func
from gradcli.errors import BindingError, CallError, LimitError, NotRecordableError, UsageError

X = np.linspace(0.5, 1.5, 6)


def wave(x, q):
    """A wave."""
    return gradcli.sin(x * q) * gradcli.exp(x)


def counted(function):
    """A function that counts its calls."""

    @functools.wraps(function)
    def called(*arguments):
        called.times += 1
        return function(*arguments)

    called.times = 0
    return called


def test_it_gives_what_the_program_gives():
    f, program = gradcli.compile(wave), gradcli.compile("sin(x*q)*exp(x)")
    for x in (0.5, 1.0, 1.5):
        values = {"x": x, "q": 2.0}
        assert f(**values) == f(x, 2.0) == f(x, q=2.0) == program(**values)
        assert f.value_and_grad(values) == program.value_and_grad(values)
        assert f.value_and_grad(values, wrt=("q",)) == program.value_and_grad(values, wrt=("q",))
        assert f.jacobian(values) == program.jacobian(values)
        assert f.hessian(values) == pytest.approx(program.hessian(values))
        assert f.derivatives(values, 3) == pytest.approx(program.derivatives(values, 3))
        assert f.derivatives(values, 5, wrt=("x",)) == pytest.approx(program.derivatives(values, 5, wrt=("x",)))
        assert f.compiled(("q", "x"), wrt=("x",))(2.0, x) == program.compiled(("q", "x"), wrt=("x",))(2.0, x)


def test_arrays_and_lists_are_inputs():
    f = gradcli.compile(lambda x, q: gradcli.tanh(x) * q)
    expected = gradcli.compile("tanh(x)*q").jacobian({"x": X, "q": 3.0})
    for given in (X, X, X.tolist()):
        found = f.jacobian({"x": given, "q": 3.0})
        np.testing.assert_allclose(found["x"], expected["x"])
        np.testing.assert_allclose(found["q"], expected["q"])
        value, found = f.value_and_grad({"x": given, "q": 3.0}, grad_output=X)
        np.testing.assert_allclose(value, 3 * np.tanh(X))
        np.testing.assert_allclose(found["q"], X @ np.tanh(X))


def test_a_sparse_hessian():
    f = gradcli.compile(lambda x: (x[1:] * x[:-1]).sum())
    for _ in range(2):
        assert f.hessian({"x": X}, sparse=True)["x,x"].row.size == 10


def test_it_is_a_decorator_and_says_what_it_is_made_of():
    f = gradcli.compile(wave)
    assert (f.__name__, f.__doc__, f.inputs) == ("wave", "A wave.", ("x", "q"))
    assert repr(f) == "<compiled function wave>"


def test_it_is_called_no_more_once_it_is_recorded():
    function = counted(lambda x: x**3)
    f = gradcli.compile(function)
    for x in (1.0, 2.0, 3.0):
        f.value_and_grad({"x": x})
    times = function.times
    assert [f.value_and_grad({"x": x}) for x in (4.0, 5.0)] == [(64.0, {"x": 48.0}), (125.0, {"x": 75.0})]
    assert function.times == times
    # Arguments of another kind are recorded separately.
    np.testing.assert_array_equal(f(X), X**3)
    assert function.times > times


def test_each_course_is_recorded_for_the_numbers_that_take_it():
    @counted
    def steps(x):
        rounds = 0
        while x > 1:
            x, rounds = x / 2, rounds + 1
        return x**2 if rounds % 2 else x**3

    f = gradcli.compile(steps)
    points = (3.0, 3.5, 5.0, 0.5) * 3
    expected = {3.0: (0.421875, 0.421875), 3.5: (0.669921875, 0.57421875), 5.0: (0.390625, 0.15625), 0.5: (0.125, 0.75)}
    for x in points:
        assert f.value_and_grad({"x": x}) == (expected[x][0], {"x": expected[x][1]})
    times = steps.times
    for x in points:
        assert f.value_and_grad({"x": x}) == (expected[x][0], {"x": expected[x][1]})
    assert steps.times == times


@pytest.mark.parametrize(
    "choose",
    [
        lambda x: x.sum() if (x > 0).any() else x[0],
        lambda x: max(x[0], x[1] * 2),
        lambda x: x[0] if x[0] else x[1],
        lambda x: sorted(x, reverse=True)[0],
    ],
)
def test_conditions_of_arrays_are_guards(choose):
    f = gradcli.compile(choose)
    for x in (np.array([1.0, 3.0]), np.array([-4.0, -5.0]), np.array([0.0, 2.0])) * 3:
        leaf = gradcli.tensor(x, requires_grad=True)
        (expected,) = gradcli.grad(choose(leaf), leaf)
        np.testing.assert_array_equal(f.value_and_grad({"x": x})[1]["x"], expected.numpy())


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x * float(x),
        lambda x: x * int(x),
        lambda x: x * x.item(),
        lambda x: x * x.tolist(),
        lambda x: x * x.detach().numpy(),
        lambda x: x * float(f"{x:.1f}"),
    ],
)
def test_one_that_reads_its_numbers_is_called_each_time(read):
    f = gradcli.compile(read)
    for x in (2.0, 3.0, 4.0, 5.0):
        assert f(x) == x * x
        assert f.value_and_grad({"x": x}) == (x * x, {"x": x})
        assert f.derivatives({"x": x}, 2) == [x * x, x, 0.0]
    with pytest.raises(NotRecordableError):
        f.compiled(("x",))


def test_one_with_an_if_is_no_function_by_position():
    with pytest.raises(NotRecordableError):
        gradcli.compile(lambda x: x if x > 0 else -x).compiled(("x",))


def test_what_leaves_the_graph_has_no_derivative_of_any_order():
    def within_no_grad(x):
        with gradcli.no_grad():
            factor = x * 1
        return factor * x

    def with_hook(x):
        y = x**2
        if y.requires_grad:
            y.register_hook(lambda g: g / 2)
        return y

    for function in (lambda x: x.detach() * x, lambda x: x.data * x, within_no_grad):
        f = gradcli.compile(function)
        for _ in range(2):
            assert f.derivatives({"x": 3.0}, 3) == [9.0, 3.0, 0.0, 0.0]
            assert f.hessian({"x": 3.0}) == {"x,x": 0.0}
    several = gradcli.compile(lambda x: within_no_grad(x) * X)
    np.testing.assert_array_equal(several.jacobian({"x": 3.0})["x"], 3 * X)
    assert gradcli.compile(with_hook).derivatives({"x": 3.0}, 2) == [9.0, 3.0, 1.0]


def test_a_tensor_from_outside_that_is_trained_is_an_input_too():
    w = gradcli.tensor(2.0, requires_grad=True)
    f = gradcli.compile(lambda x: w * x)
    for value in (2.0, 5.0):
        with gradcli.no_grad():
            w.fill_(value)
        for _ in range(3):
            assert f.value_and_grad({"x": 3.0}) == (3 * value, {"x": value})
            (slope,) = gradcli.grad(f(3.0), w)
            assert slope.item() == 3.0


def test_a_tensor_of_its_own_that_requires_grad_is_none_from_outside():
    def slope(x):
        leaf = x.detach().clone().requires_grad_()
        return gradcli.grad(leaf**3, leaf, create_graph=True)[0]

    f = gradcli.compile(slope)
    for _ in range(3):
        assert type(f(2.0)) is float
        assert f(2.0) == 12.0


def test_tensors_keep_their_graph():
    f = gradcli.compile(wave)
    x = gradcli.tensor(0.5, requires_grad=True)
    y = 2 * f(x, 2.0)
    y.backward()
    assert x.grad.item() == 2 * f.value_and_grad({"x": 0.5, "q": 2.0})[1]["x"]


def test_it_composes_with_functions_of_functions():
    f = gradcli.compile(wave)
    x, q = gradcli.tensor(X), gradcli.tensor(2.0)
    rows = func.vmap(func.grad(f), in_dims=(0, None))(x, q)
    for each, row in zip(X, rows.tolist()):
        assert row == pytest.approx(f.value_and_grad({"x": each, "q": 2.0})[1]["x"])
    slope = gradcli.compile(func.grad(lambda x: x**3))
    for _ in range(3):
        assert slope.value_and_grad({"x": 2.0}) == (12.0, {"x": 12.0})
        assert slope.derivatives({"x": 2.0}, 3) == [12.0, 12.0, 6.0, 0.0]


def test_a_compiled_function_in_another_is_recorded_with_it():
    inner = counted(lambda x: x**2)
    square = gradcli.compile(inner)
    f = gradcli.compile(lambda x: square(x) + square(x=2 * x))
    for _ in range(3):
        assert f.value_and_grad({"x": 3.0}) == (45.0, {"x": 30.0})
    times = inner.times
    assert f.value_and_grad({"x": 1.0}) == (5.0, {"x": 10.0})
    assert inner.times == times


def test_gradcheck_takes_it():
    f = gradcli.compile(wave)
    assert gradcli.gradcheck(f, {"x": 0.5, "q": 2.0}, order=2)
    assert gradcli.gradcheck(f, [0.5, 2.0])


def test_arguments_may_have_defaults_and_be_by_keyword_or_position_alone():
    def scaled(x, /, times=3, *, factor=2.0):
        for _ in range(int(times)):
            x = x * factor
        return x

    f = gradcli.compile(scaled)
    assert f.inputs == ("x", "times", "factor")
    for _ in range(3):
        assert [f(1.0), f(1.0, 2), f(1.0, factor=3.0), f(x=1.0)] == [8.0, 4.0, 27.0, 8.0]
        assert f.value_and_grad({"x": 2.0}) == (16.0, {"x": 8.0})
        assert f.value_and_grad({"factor": 3.0, "x": 2.0}) == (54.0, {"factor": 54.0, "x": 27.0})
    assert f.compiled(("x",))(1.0) == (8.0, (8.0,))


def test_what_is_given_is_not_changed():
    def changed(x):
        x += 1
        x[0] = 7.0
        return x.sum()

    f, given = gradcli.compile(changed), np.zeros(3)
    assert [f(given) for _ in range(3)] == [9.0] * 3
    np.testing.assert_array_equal(given, np.zeros(3))


def test_a_number_may_be_returned():
    f = gradcli.compile(lambda x: 3)
    for _ in range(3):
        assert f.value_and_grad({"x": 1.0}) == (3.0, {"x": None})
    assert gradcli.compile(lambda x: x > 0)(2.0) == 1.0


def test_an_error_of_its_own_is_raised():
    def failing(x):
        raise KeyError("own")

    f = gradcli.compile(failing)
    for _ in range(2):
        with pytest.raises(KeyError, match="own"):
            f.derivatives({"x": 1.0}, 2)


def test_limits_hold():
    def endless(x):
        while x < 1:
            x = x * 1
        return x

    with pytest.raises(LimitError, match="1,000 steps"):
        gradcli.compile(endless, max_steps=1000)(0.5)
    with pytest.raises(LimitError, match="10 array elements"):
        gradcli.compile(lambda x: x * gradcli.ones(100), max_elements=10)(X[0])
    for limit in ({"max_seconds": 1}, {"max_memory": "1GiB"}):
        with pytest.raises(UsageError, match="max_seconds and max_memory hold for a program that is a text"):
            gradcli.compile(wave, **limit)


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda f: f(1.0), BindingError, "the function needs 'q', which is not among the inputs"),
        (lambda f: f.value_and_grad({"x": 1.0}), BindingError, "the function needs 'q'"),
        (lambda f: f.compiled(("x",)), BindingError, "the function needs 'q'"),
        (lambda f: f(1.0, 2.0, z=3.0), BindingError, "the function has no argument 'z'"),
        (lambda f: f(gradcli.tensor(1.0), z=3.0), BindingError, "the function has no argument 'z'"),
        (lambda f: f(1.0, 2.0, 3.0), CallError, "3 values are given by position to a function of x, q"),
        (lambda f: f(1.0, x=3.0), CallError, "'x' is given twice"),
        (lambda f: gradcli.compile(lambda *x: x[0]), CallError, "takes any number of arguments"),
        (lambda f: gradcli.compile(gradcli.sin), CallError, "takes any number of arguments"),
        (
            lambda f: gradcli.compile(lambda x: (x, x))(1.0),
            CallError,
            "returns one tensor, and <lambda> returns a tuple",
        ),
        (lambda f: gradcli.compile(lambda x: None)(1.0), CallError, "returns None"),
    ],
)
def test_errors(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt(gradcli.compile(wave))


@gradcli.compile
def decorated(x):
    return 2 * x


@pytest.mark.cases(4)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize(
    "made",
    [
        gradcli.compile("2*x", max_steps=77),
        gradcli.compile("2*x", max_seconds=60),
        gradcli.compile(wave, max_elements=10_000),
        decorated,
    ],
    ids=["program", "confined", "function", "decorator"],
)
def test_copies_and_pickles(made, copied):
    values = dict.fromkeys(made.inputs, 1.5)
    value = made.value_and_grad(values)
    other = copied(made)
    assert type(other) is type(made)
    assert other.value_and_grad(values) == value
    with pytest.raises(BindingError, match="'y'"):
        other.value_and_grad({"y": 1.0})


def test_copies_have_the_limits():
    copied = copy.deepcopy(gradcli.compile("while x > 0 { x = x + 1 }; x", max_steps=50))
    with pytest.raises(LimitError):
        copied(x=1.0)


def test_constants_are_no_inputs():
    program = gradcli.compile("2*pi*x + e*q")
    assert program.inputs == ("x", "q")
    assert program.value_and_grad({"x": 1.0, "q": 1.0, "e": 2.0})[1]["e"] == 1.0


def test_a_module_has_the_arguments_of_its_forward():
    class Scaled(gradcli.nn.Module):
        def __init__(self):
            self.weight = gradcli.nn.Parameter([2.0, 3.0])

        def forward(self, x, power=1.0):
            return (self.weight * x) ** power

    module = Scaled()
    compiled = gradcli.compile(module)
    assert compiled.inputs == ("x", "power")
    compiled(gradcli.tensor([1.0, 2.0]), power=2.0).sum().backward()
    assert module.weight.grad.tolist() == [4.0, 24.0]
