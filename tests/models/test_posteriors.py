"""Tests `gradcli sample` on posteriors of posteriordb: means and deviations within Monte Carlo errors of the references."""

from __future__ import annotations

import pytest

from tests.models.posteriors import POSTERIORS, compared

pytest.importorskip("llvmlite", reason="densities are machine code with gradcli[llvm] alone")

# Those that take more than a second; `python -m tests.models.posteriors` compares them too.
SLOW = ("wells_data", "gp_pois_regr", "hudson", "kidscore_interaction", "eight_schools_centered", "logvas")


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", [name for name in POSTERIORS if not any(part in name for part in SLOW)])
def test_moments_of_posteriordb(name: str) -> None:
    # Of 200 numbers, 1 or 2 are 3 errors away.
    result = compared(name, draws=500, warmup=500)
    assert result.largest() < 3.5, result[:2]
    assert result.found.divergences <= 10


def test_the_centred_parametrisation_is_told_to_be_bad() -> None:
    result = compared("eight_schools-eight_schools_centered", draws=500, warmup=500)
    assert result.found.divergences
    assert any("diverged" in warning for warning in result.found.warnings)
