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
    [("ln_structured", "weight", 1, 2, 0)],
    [("ln_structured", "weight", 0.5, float("inf"), -1), ("ln_structured", "weight", 0.5, 1, -1)],
    [("l1_unstructured", "weight", 5), ("random_structured", "weight", 1, 1), ("l1_unstructured", "weight", 0.5)],
    [("ln_structured", "weight", 0, 2, 0), ("identity", "weight"), ("random_structured", "weight", 0.4, 0)],
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
        for name in {step[1] for step in steps}:
            original = getattr(layer, f"{name}_orig")
            module.remove(layer, name)
            assert getattr(layer, name) is original
        assert not module.is_pruned(layer)
    if len({step[1] for step in steps}) == 1:
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


@pytest.mark.parametrize("kind", ["L1Unstructured", "RandomUnstructured"])
def test_networks_are_pruned_as_one_tensor(kind):
    own, other = layers()
    for (library, module), layer in zip(LIBRARIES, (own, other)):
        module.l1_unstructured(layer, "bias", 1)
        pairs = [(layer, "weight"), (layer, "bias")]
        scores = {(layer, "bias"): library.tensor([0.1, 0.2, 0.3], dtype=library.float64)}
        library.manual_seed(3)
        module.global_unstructured(pairs, getattr(module, kind), importance_scores=scores, amount=0.4)
        assert [type(method).__name__ for method in hook_of(layer, "bias")] == ["L1Unstructured", "CustomFromMask"]
        with pytest.raises(TypeError, match='Only "unstructured" PRUNING_TYPE supported'):
            module.global_unstructured(pairs, module.LnStructured, amount=1, n=2)
    assert_same_states(own, other)


def hook_of(layer, name):
    return next(hook for hook in layer._forward_pre_hooks.values() if hook._tensor_name == name)


def test_a_method_of_ones_own_prunes_what_is_left():
    own, other = layers()
    for (library, module), layer in zip(LIBRARIES, (own, other)):

        class EveryOther(module.BasePruningMethod):
            PRUNING_TYPE = "unstructured"

            def compute_mask(self, t, default_mask):
                mask = default_mask.clone()
                mask.view(-1)[::2] = 0
                return mask

        EveryOther.apply(layer, "weight")
        EveryOther.apply(layer, "weight")
        module.custom_from_mask(layer, name="bias", mask=library.tensor([0, 1, 1]))
        assert EveryOther().prune(library.ones(5)).tolist() == [0, 1, 0, 1, 0]
    assert_same_states(own, other)


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


def test_structured_pruning_checks_what_it_prunes():
    own, other = layers()
    for (_, module), layer in zip(LIBRARIES, (own, other)):
        with pytest.raises(ValueError, match="Structured pruning can only be applied to multidimensional tensors"):
            module.ln_structured(layer, "bias", 1, 2, 0)
        with pytest.raises(ValueError, match="amount=4 should be smaller than the number of parameters to prune=3"):
            module.random_structured(layer, "weight", 4, 0)
        with pytest.raises((IndexError, gradcli.errors.ShapeError)):
            module.random_structured(layer, "weight", 1, 2)
    assert [*own.state_dict()] == ["weight", "bias"]


def test_what_is_not_pruned_cannot_be_restored():
    layer = layers()[0]
    with pytest.raises(ValueError, match=r"Parameter 'weight' of module Linear.* has to be pruned before"):
        prune.remove(layer, "weight")
    with pytest.raises(ValueError, match="importance_scores should have the same shape"):
        prune.l1_unstructured(layer, "weight", 1, importance_scores=gradcli.ones(4))
    assert not prune.is_pruned(copy.deepcopy(layer))
