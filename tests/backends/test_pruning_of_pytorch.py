"""Pruned networks have the masks, outputs, gradients and states of PyTorch's."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradcli
from gradcli.nn.utils import prune

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
torch_prune = pytest.importorskip("torch.nn.utils.prune", reason="PyTorch is not installed")

INPUTS = [[0.5, -1.0, 2.0, 0.25], [1.5, 0.75, -0.5, 1.0]]
LIBRARIES = ((gradcli, prune), (torch, torch_prune))


def layers():
    """A layer of either library, with the same parameters in double precision."""
    made = []
    for library, _ in LIBRARIES:
        library.manual_seed(1)
        made.append(library.nn.Linear(4, 3).to(library.float64))
    made[0].load_state_dict(made[1].state_dict())
    return made


def assert_same_states(own, other):
    assert [*own.state_dict()] == [*other.state_dict()]
    assert [name for name, _ in own.named_parameters()] == [name for name, _ in other.named_parameters()]
    for name, value in other.state_dict().items():
        np.testing.assert_array_equal(own.state_dict()[name].numpy(), value.numpy(), err_msg=name)


def stepped(library, layer):
    """The output of a layer, and the gradients of the sum of its squares."""
    output = layer(library.tensor(INPUTS, dtype=library.float64))
    (output**2).sum().backward()
    return [output.tolist(), *(p.grad.tolist() for p in layer.parameters())]


PRUNINGS = [
    [("l1_unstructured", "weight", 5)],
    [("l1_unstructured", "weight", 0.3), ("l1_unstructured", "bias", 1)],
    [("l1_unstructured", "weight", 0.5), ("l1_unstructured", "weight", 0.5)],
    [("l1_unstructured", "weight", 0)],
    [("random_unstructured", "weight", 0.4)],
    [("random_unstructured", "weight", 4), ("l1_unstructured", "weight", 0.5), ("random_unstructured", "weight", 2)],
]


@pytest.mark.parametrize("steps", PRUNINGS)
def test_a_pruned_layer_is_that_of_pytorch(steps):
    own, other = layers()
    for (library, module), layer in zip(LIBRARIES, (own, other)):
        library.manual_seed(3)
        for name, *arguments in steps:
            assert getattr(module, name)(layer, *arguments) is layer
        assert module.is_pruned(library.nn.Sequential(layer))
    assert_same_states(own, other)
    for found, expected in zip(*(stepped(library, layer) for (library, _), layer in zip(LIBRARIES, (own, other)))):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    for (_, module), layer in zip(LIBRARIES, (own, other)):
        for name in {name for _, name, _ in steps}:
            original = getattr(layer, f"{name}_orig")
            module.remove(layer, name)
            assert getattr(layer, name) is original
        assert not module.is_pruned(layer)
    if len({name for _, name, _ in steps}) == 1:
        assert_same_states(own, other)


def test_scores_choose_what_is_pruned():
    own, other = layers()
    for (library, module), layer in zip(LIBRARIES, (own, other)):
        scores = library.arange(12).reshape(3, 4) - 6.5
        module.l1_unstructured(layer, "weight", 4, importance_scores=scores)
    assert_same_states(own, other)
    assert own.weight_mask.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 1]]


def test_a_pruned_element_stays_0_in_training():
    layer = layers()[0]
    prune.l1_unstructured(layer, "weight", 6)
    optimizer = gradcli.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        stepped(gradcli, layer)
        optimizer.step()
    prune.remove(layer, "weight")
    assert gradcli.count_nonzero(layer.weight).item() == 6
    assert any(layer.weight is p for p in optimizer.param_groups[0]["params"])


@pytest.mark.parametrize("amount", [-1, 1.5, -0.5, 13, "half"])
def test_amounts_are_checked_as_in_pytorch(amount):
    own, other = layers()
    messages = []
    for (_, module), layer in zip(LIBRARIES, (own, other)):
        with pytest.raises((ValueError, TypeError), match="amount") as caught:
            module.l1_unstructured(layer, "weight", amount)
        messages.append(str(caught.value))
        assert not module.is_pruned(layer)
    assert messages[0] == messages[1]
    assert [*own.state_dict()] == ["weight", "bias"]


def test_what_is_not_pruned_cannot_be_restored():
    layer = layers()[0]
    with pytest.raises(ValueError, match=r"Parameter 'weight' of module Linear.* has to be pruned before"):
        prune.remove(layer, "weight")
    with pytest.raises(ValueError, match="importance_scores should have the same shape"):
        prune.l1_unstructured(layer, "weight", 1, importance_scores=gradcli.ones(4))
    assert not prune.is_pruned(copy.deepcopy(layer))
