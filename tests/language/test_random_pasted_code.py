"""Tests random programs of the whole grammar: values or GradcliErrors, exact spans, and formulas that read back."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pasted import programs

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.evaluation import session
from gradcli.formulas.languages.text import text
from gradcli.language.syntax import parse, parse_expression, tree
from tests.evaluation.test_random_programs import check
from tests.formulas.test_program_text import outputs_of, read_again
from tests.language.test_syntax import show
from tests.program.test_passes import assert_same

pytestmark = pytest.mark.filterwarnings("ignore::gradcli.errors.AccuracyWarning")
QUIET = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
VALUES = st.sampled_from([0.0, -1.0, 0.7, 1.3, 3.0, 1e300, float("inf"), float("nan")])


def outcome(source: str, **values: float) -> session.Result | GradcliError:
    try:
        with limits.within(max_steps=20_000, max_elements=10**6):
            program = parse(source)
            return session.run(session.EvaluationRequest(program=program, bindings=values, wrt=tuple(values)))
    except GradcliError as found:
        error = found
    check(error)
    assert error.span is None or 0 <= error.span.start <= error.span.end <= len(source)
    return error


@settings(QUIET, max_examples=25)
@given(source=programs(), x=VALUES, q=VALUES)
def test_every_outcome_is_a_value_or_an_error_of_ours(source, x, q):
    outcome(source, x=x, q=q)


@settings(QUIET, max_examples=25)
@given(
    source=programs(),
    place=st.integers(0, 10_000),
    instead=st.sampled_from(["", "\n", " ", "(", "}", ":", "²", "!", "*", "in"]),
)
def test_a_program_with_a_slip_is_a_value_or_an_error_of_ours(source, place, instead):
    place %= len(source)
    outcome(source[:place] + instead + source[place + 1 :], x=0.7, q=1.3)


@settings(QUIET, max_examples=20)
@given(source=programs())
def test_the_text_of_a_node_reads_as_the_node(source):
    for node in tree.walk(parse(source)):
        for child in tree.children(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end
        written = source[slice(*node.span)]
        # A raised exponent is not an expression of its own; the items of a tuple are one in brackets.
        if isinstance(node, tree.Expression) and written[0] not in "⁻²":
            assert show(parse_expression(f"({written})")) == show(node)


def test_formulas_of_programs_read_back_as_the_same_numbers():
    compared = []

    @settings(QUIET, max_examples=25)
    @given(source=programs())
    def compare(source):
        inputs = {"x": 0.7, "q": 1.3}
        try:
            with limits.within(max_steps=20_000, max_elements=10**6):
                outputs = outputs_of(source, inputs)
                formulas = [
                    (text(program), value) for program, value in outputs if arrays.dtype_name(value) == "float64"
                ]
        except GradcliError:
            return
        for written, value in formulas:
            assert_same(read_again(written, inputs)[1], value)
            compared.append(written)

    compare()
    assert len(compared) > 20


def test_the_strategy_reaches_values():
    """The tests above would also pass if every program were an error."""
    found = []

    @settings(QUIET, max_examples=25)
    @given(source=programs())
    def collect(source):
        found.append(isinstance(outcome(source, x=0.7, q=1.3), session.Result))

    collect()
    assert sum(found) > len(found) / 3
