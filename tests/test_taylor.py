"""Truncated Taylor series: every entry of the table against repeated reverse mode, and what else holds of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradcli import tensor
from gradcli.calculus.derivatives import derivatives
from gradcli.primitives.arithmetic import multiply
from gradcli.primitives.bind import concrete
from gradcli.primitives.primitive import NotImplementedRule
from gradcli.primitives.reductions import sum_
from gradcli.taylor import Jet
from tests.test_primitives import DIFFERENTIABLE, PRIMITIVES, Case, weights

ORDER = 4

every_differentiable_case = pytest.mark.parametrize("case", DIFFERENTIABLE)


def total(case: Case, operands: list[Any]) -> Any:
    """The value as one number: its elements weighted and summed."""
    value = case.call(*operands)
    return sum_(multiply(value, weights(value)))


def moved(case: Case, t: Any) -> list[Any]:
    """The operands of a case, moved along fixed directions by `t`."""
    return [o + t * weights(o, 5 + i) for i, o in enumerate(case.operands)]


def taylor_derivatives(value: Any, order: int) -> list[Any]:
    """The derivatives by t from order 0 on, of a series or of a constant."""
    found = [*value.coefficients] if isinstance(value, Jet) else [value]
    return [math.factorial(k) * c for k, c in enumerate(found)] + [0.0] * (order + 1 - len(found))


def assert_same_derivatives(case: Case) -> None:
    t = tensor(0.0, requires_grad=True)
    by_reverse = derivatives(total(case, moved(case, t)), {"t": t}, ORDER).values()
    expected = [0.0 if d is None else concrete(d) for d in by_reverse]
    found = taylor_derivatives(total(case, moved(case, Jet([0.0, 1.0], ORDER))), ORDER)[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * max(map(abs, expected)))


@every_differentiable_case
def test_a_series_has_the_derivatives_of_repeated_reverse_mode(case):
    assert_same_derivatives(case)


@pytest.mark.parametrize("entry", PRIMITIVES, ids=lambda e: e.name)
def test_no_rule_is_missing(entry):
    assert not isinstance(entry.jet, NotImplementedRule)


@every_differentiable_case
def test_a_series_without_further_terms_gives_one_without(case):
    value = total(case, [Jet([o], ORDER) for o in case.operands])
    assert value.coefficients == (total(case, case.operands),)
