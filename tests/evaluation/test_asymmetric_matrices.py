"""Tests the warning that a decomposition takes the symmetric part of a matrix that is not symmetric."""

from __future__ import annotations

from typing import Any

import pytest

CALLS = [
    ("sum(torch.linalg.cholesky(A))", "cholesky"),
    ("np.linalg.eigvalsh(A)[0]", "eigvalsh"),
    ("w, V = scipy.linalg.eigh(A); w[0]", "eigh"),
]


@pytest.mark.parametrize(("program", "name"), CALLS)
def test_a_matrix_that_is_not_symmetric_is_told(run: Any, program: str, name: str) -> None:
    warnings = run("eval", program, "A=[[4, 1], [2, 3]]", "--json").json["warnings"]
    assert [(w["code"], w["operation"]) for w in warnings] == [("asymmetric", name)]
    assert warnings[0]["message"] == f"the matrix of '{name}' is not symmetric; its symmetric part is used"


@pytest.mark.parametrize(("program", "name"), CALLS)
@pytest.mark.parametrize("matrix", ["[[4, 1], [1, 3]]", "[[4, 1.00000000000001], [1, 3]]", "[[4, 0], [0, 3]]"])
def test_a_matrix_that_is_symmetric_but_for_rounding_is_not(run: Any, program: str, name: str, matrix: str) -> None:
    assert run("eval", program, f"A={matrix}").err == ""


@pytest.mark.parametrize("executor", ["eager", "compiled"])
def test_every_executor_tells(run: Any, executor: str) -> None:
    words = ("--executor", executor)
    assert "is not symmetric" in run("eval", "eigvalsh(A)[0]", "A=[[4, 1], [2, 3]]", *words).err
    assert run("eval", "eigvalsh(A)[0]", "A=[[4, 1], [1, 3]]", *words).err == ""


def test_a_triangle_that_is_asked_for_is_read_without_a_warning(run: Any) -> None:
    assert run("eval", "w, V = eigh(A, UPLO='L'); w[0]", "A=[[4, 1], [2, 3]]").err == ""


def test_a_complex_matrix_is_compared_with_its_conjugate_transpose(run: Any) -> None:
    assert run("eval", "eigvalsh([[2, 1j], [-1j*x, 3]])[0]", "x=1").err == ""
    assert "is not Hermitian; its Hermitian part is used" in run("eval", "eigvalsh([[2, 1j], [1j*x, 3]])[0]", "x=1").err
