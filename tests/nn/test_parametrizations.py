"""Parameters computed from others, and what is refused of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import gradcli
from gradcli import nn
from gradcli.errors import GradcliError
from gradcli.nn.utils import parametrizations, parametrize


class Doubled(nn.Module):
    calls = 0

    def forward(self, x: Any) -> Any:
        Doubled.calls += 1
        return 2.0 * x


class FirstRow(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[0]


def layer() -> Any:
    return parametrize.register_parametrization(nn.Linear(2, 3), "bias", Doubled())


def test_a_copy_keeps_its_parametrization_when_the_original_loses_it() -> None:
    original = layer()
    other = copy.deepcopy(original)
    parametrize.remove_parametrizations(original, "bias")
    assert type(original) is nn.Linear
    assert parametrize.is_parametrized(other, "bias")
    assert other.bias.tolist() == original.bias.tolist()


def test_a_cached_tensor_is_computed_once() -> None:
    made = layer()
    before = Doubled.calls
    with parametrize.cached():
        assert made.bias is made.bias
    assert Doubled.calls == before + 1
    assert made.bias is not made.bias


def test_the_original_values_can_be_left() -> None:
    made = layer()
    original = made.parametrizations.bias.original
    values = original.tolist()
    parametrize.remove_parametrizations(made, "bias", leave_parametrized=False)
    assert made.bias is original
    assert made.bias.tolist() == values


def test_parametrizations_of_one_tensor_are_applied_in_turn() -> None:
    made = layer()
    once = made.bias
    parametrize.register_parametrization(made, "bias", Doubled())
    assert made.bias.tolist() == (2.0 * once).tolist()
    assert parametrize.type_before_parametrizations(made) is nn.Linear


REFUSED = {
    "does not have a parameter": lambda: parametrize.register_parametrization(nn.Linear(2, 3), "gain", Doubled()),
    "may not change the shape": lambda: parametrize.register_parametrization(nn.Linear(2, 3), "weight", FirstRow()),
    "does not have a parametrization on": lambda: parametrize.remove_parametrizations(nn.Linear(2, 3), "weight"),
    "does not implement right_inverse": lambda: setattr(layer(), "bias", gradcli.ones(3)),
    "a sequence of tensors": lambda: parametrize.remove_parametrizations(
        parametrizations.weight_norm(nn.Linear(2, 3)), "weight", leave_parametrized=False
    ),
    "n_power_iterations to be positive": lambda: parametrizations.spectral_norm(nn.Linear(2, 3), "weight", 0),
    "has no parameter or buffer": lambda: parametrizations.spectral_norm(nn.Linear(2, 3), "gain"),
    "weight_norm of 'weight' not found": lambda: nn.utils.remove_weight_norm(nn.Linear(2, 3)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_it_is_refused(message: str) -> None:
    with pytest.raises(GradcliError, match=message):
        REFUSED[message]()
