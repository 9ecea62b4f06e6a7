"""Tests random programs: the outcome is always a value or a GradcliError."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradcli
from gradcli import limits
from gradcli.errors import ExitStatus, GradcliError
from gradcli.evaluation import session
from gradcli.language.syntax import parse
from tests.strategies import NAMES, complex_programs, programs

FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-300, 1e300, float("inf"), float("nan")])
VALUES = st.one_of(
    FLOATS,
    st.lists(FLOATS, max_size=4).map(np.array),
    st.lists(FLOATS, min_size=9, max_size=9).map(lambda v: np.array(v).reshape(3, 3)),
    st.just(np.ones((2, 3, 4))),
)


def outcome(text: str, values: dict[str, object], order: int | None) -> session.Result | None:
    """The result of a run, None for a GradcliError."""
    try:
        program = parse(text)
        with limits.within(max_steps=5000, max_elements=10**6):
            return session.run(
                session.EvaluationRequest(program=program, bindings=values, wrt=tuple(values), order=order, nodes=True)
            )
    except GradcliError as error:
        check(error)
        return None


def check(error: GradcliError) -> None:
    assert error.message
    assert error.exit_status in (ExitStatus.FAILURE, ExitStatus.USAGE)
    assert error.report()


@settings(
    max_examples=90,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(text=programs(), values=st.tuples(*[VALUES] * len(NAMES)), order=st.sampled_from([None, None, 2]))
def test_every_outcome_is_a_value_or_an_error_of_ours(text, values, order):
    result = outcome(text, dict(zip(NAMES, values)), order)
    if result is not None:
        for name, gradient in (result.grad or {}).items():
            assert gradient is None or np.shape(gradient) == np.shape(dict(zip(NAMES, values))[name])


COMPLEX_VALUES = st.one_of(
    VALUES, FLOATS.map(lambda x: x * 1j), st.lists(FLOATS, max_size=3).map(lambda v: np.array(v) - 2j)
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    text=complex_programs(), values=st.tuples(*[COMPLEX_VALUES] * len(NAMES)), order=st.sampled_from([None, None, 2])
)
def test_every_outcome_of_complex_numbers_is_a_value_or_an_error_of_ours(text, values, order):
    result = outcome(text, dict(zip(NAMES, values)), order)
    if result is not None:
        for name, gradient in (result.grad or {}).items():
            assert gradient is None or np.shape(gradient) == np.shape(dict(zip(NAMES, values))[name])


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(text=programs(), values=st.tuples(*[st.floats(0.2, 2.0)] * len(NAMES)))
def test_the_same_program_gives_the_same_numbers(text, values):
    bindings = dict(zip(NAMES, values))
    first, second = outcome(text, bindings, None), outcome(text, bindings, None)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        np.testing.assert_array_equal(first.value, second.value)
        for name, gradient in (first.grad or {}).items():
            np.testing.assert_equal(gradient, (second.grad or {})[name])


@pytest.mark.slow
def test_the_strategy_reaches_values():
    """The test above would also pass if every program were an error."""
    found = []

    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(text=programs())
    def collect(text):
        found.append(outcome(text, dict(zip(NAMES, (0.5, 1.5, 2.0))), None) is not None)

    collect()
    # About a third have a value; Hypothesis also draws constants of loaded modules, so the share varies.
    assert sum(found) > len(found) / 6
    assert gradcli.compile("x")(x=1.0) == 1.0
