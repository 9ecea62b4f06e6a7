"""Tests of anomaly mode, compared with PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import gradcli
from gradcli import tensor
from gradcli.autograd import detect_anomaly, set_detect_anomaly
from gradcli.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from gradcli.errors import DifferentiationError


class Nan(gradcli.Function):
    @staticmethod
    def forward(_ctx: Any, x: Any, y: Any) -> Any:
        return x + y

    @staticmethod
    def backward(_ctx: Any, g: Any) -> Any:
        return g, g * float("nan")


class Again(gradcli.Function):
    """A Function whose backward contains an operation that fails in turn."""

    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(_ctx: Any, g: Any) -> Any:
        return Nan.apply(g, g)


def leaf(value: Any = 2.0) -> Any:
    return tensor(value, requires_grad=True)


def told(fail: Any, error: str) -> list[str]:
    """The warnings of a call that fails."""
    with warnings.catch_warnings(record=True) as known:
        warnings.simplefilter("always")
        with pytest.raises((DifferentiationError, KeyError), match=error):
            fail()
    return [str(warning.message) for warning in known]


def test_nan_is_an_error_that_names_the_operation_and_its_line():
    def fail():
        with detect_anomaly():
            y = Nan.apply(leaf(), leaf())  # the line
            y.backward()

    enabled, message = told(fail, r"^Function 'NanBackward' returned nan values in its 1th output\.$")
    assert enabled.startswith("Anomaly Detection has been enabled. This mode will increase the runtime")
    assert message.startswith("Error detected in NanBackward. Traceback of forward call that caused the error:\n")
    assert message.rstrip().endswith("y = Nan.apply(leaf(), leaf())  # the line")


def test_nan_that_is_not_looked_for_is_none():
    x = leaf()
    Nan.apply(x, x).backward()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), detect_anomaly(check_nan=False):
        Nan.apply(x, x).backward()
    assert repr(x.grad.item()) == "nan"


def test_of_primitives_and_where_nothing_is_known_of_the_forward():
    x = leaf([0.0, 1.0])
    y = (x.sqrt() * x).sum()

    def fail():
        with detect_anomaly():
            y.backward()

    _, message = told(fail, "^Function 'SqrtBackward0' returned nan values in its 0th output")
    assert message == (
        "Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly during forward "
        "pass for more information."
    )


def test_errors_of_other_kinds_are_told_of_too():
    def edited():
        with detect_anomaly():
            y = leaf([1.0, 2.0]) + 1
            z = y**2
            y += 1
            z.sum().backward()

    assert told(edited, "modified by an inplace operation")[1].startswith("Error detected in PowBackward0. Traceback")

    def hooked():
        with detect_anomaly():
            y = leaf() * 2
            y.register_hook({}.__getitem__)
            y.grad_fn.register_prehook({}.__getitem__)
            (y + 1).backward()

    assert told(hooked, "tensor")[0].startswith("Anomaly Detection")


def test_what_a_backward_recorded_knows_the_operation_that_it_was_the_backward_of():
    def fail():
        with detect_anomaly(check_nan=False):
            y = Again.apply(leaf())  # the first
            (slope,) = gradcli.grad(y, y.grad_fn.next_functions[0][0].variable, leaf(), create_graph=True)
        node = slope.grad_fn
        assert node.metadata["parent_"] is y.grad_fn
        assert any("the first" in line for line in y.grad_fn.metadata["traceback_"])
        with detect_anomaly():
            slope.backward()

    messages = told(fail, "^Function 'NanBackward' returned nan values in its 1th output")
    assert [m.split(".")[0].strip() for m in messages[2:]] == [
        "Error detected in NanBackward",
        "Previous calculation was induced by AgainBackward",
    ]
    assert "# the first" in messages[-1]


def test_a_warning_that_is_an_error_does_not_replace_it(capsys):
    def fail():
        with detect_anomaly():
            warnings.simplefilter("error")
            Nan.apply(leaf(), leaf()).backward()

    assert len(told(fail, "^Function 'NanBackward' returned nan")) == 1
    assert "Error detected in NanBackward" in capsys.readouterr().err


def test_the_mode_ends_with_its_block():
    states = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = detect_anomaly(check_nan=False)
    with mode:
        states.append((is_anomaly_enabled(), is_anomaly_check_nan_enabled()))
        with set_detect_anomaly(True):
            states.append((is_anomaly_enabled(), is_anomaly_check_nan_enabled()))
        with set_detect_anomaly(False):
            states.append((is_anomaly_enabled(), is_anomaly_check_nan_enabled()))
            assert "traceback_" not in (leaf() * 2).grad_fn.metadata
        states.append((is_anomaly_enabled(), is_anomaly_check_nan_enabled()))
    assert states == [(True, False), (True, True), (False, False), (True, False)]
    assert not is_anomaly_enabled()
    assert "traceback_" not in (leaf() * 2).grad_fn.metadata
    set_detect_anomaly(True)
    assert "traceback_" in (leaf() * 2).grad_fn.metadata
    set_detect_anomaly(False)
    assert not is_anomaly_enabled()


def test_jacobians_by_rows_are_looked_at_too():
    def fail():
        with detect_anomaly():
            gradcli.jacobian(lambda x: x.sqrt() * x, leaf([0.0, 1.0]))

    assert any(m.startswith("Error detected in SqrtBackward0.") for m in told(fail, "returned nan values"))
