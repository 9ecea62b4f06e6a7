"""The conformance programs on every backend: the numbers of PyTorch's autograd, to 1e-9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import arrays
from gradcli.evaluation import session
from gradcli.language.names import scope
from gradcli.language.syntax import parse
from tests.language.test_conformance import BETTER, CASES, assert_same, numbers


def each_of(cases: Sequence[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[c["id"] for c in cases])


def with_truths(case: dict[str, Any]) -> bool:
    return "(x<y)*x" in case["program"]


@pytest.mark.cases(120, jax=40)
@each_of([c for c in CASES if not with_truths(c)])
def test_value_and_gradients(case: dict[str, Any], xp: Any) -> None:
    check_value_and_gradients(case, xp)


# The Python array API has no arithmetic of truth values, which the rule of `multiply` uses, so that the strict library
# is not among these.
@pytest.mark.parametrize("xp", ["torch", "jax", "cupy"], indirect=True)
@each_of([c for c in CASES if with_truths(c)])
def test_value_and_gradients_with_truth_values(case: dict[str, Any], xp: Any) -> None:
    check_value_and_gradients(case, xp)


def check_value_and_gradients(case: dict[str, Any], xp: Any) -> None:
    program = gradcli.compile(case["program"])
    given = {name: xp.asarray(numbers(v), "float64") for name, v in case["bindings"].items()}
    read = {name: v for name, v in given.items() if name in case["program"]}
    value, grads = program.value_and_grad(read, case.get("wrt"), numbers(case.get("grad_output")))
    assert xp.owns(value)
    scale = scale_of(case)
    assert_same(arrays.on_host(value), case["value"], scale)
    assert grads.keys() <= case["grad"].keys()
    for name, expected in (case["grad"] | BETTER.get(case["id"], {})).items():
        found = grads.get(name)
        assert found is None or xp.owns(found)
        assert_same(None if found is None else arrays.on_host(found), expected, scale)


# PyTorch compiles a program with g++, which takes two seconds.
@pytest.mark.cases(24, torch=8)
@each_of(CASES)
def test_compiled(case: dict[str, Any], backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not case["id"].startswith("edge"):
        # At the edges, where there may be something to warn of, eager evaluation steps in.
        monkeypatch.setattr(session, "_run", None)
    program = parse(case["program"])
    reads = scope.free_names(program)
    with arrays.using_namespace(arrays.chosen(backend, None)):
        given = {
            n: arrays.in_default_namespace(arrays.asarray(numbers(v), "float64")) for n, v in case["bindings"].items()
        }
        cotangent = numbers(case.get("grad_output"))
        request = session.EvaluationRequest(
            program=program,
            bindings={n: v for n, v in given.items() if n in reads},
            wrt=[n for n in case.get("wrt") or given if n in reads],
            grad_output=None
            if cotangent is None
            else arrays.in_default_namespace(arrays.asarray(cotangent, "float64")),
            executor="compiled",
        )
        result = session.run(request)
    scale = scale_of(case)
    assert_same(result.value, case["value"], scale)
    for name, expected in (case["grad"] | BETTER.get(case["id"], {})).items():
        assert_same((result.grad or {}).get(name), expected, scale)


def scale_of(case: dict[str, Any]) -> float:
    return max([1.0, *(abs(v) for v in np.ravel(numbers(case["value"])) if np.isfinite(v))])
