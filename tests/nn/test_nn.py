"""Tests `gradcli.nn`: modules, their parameters, and training a network."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import gradcli
from gradcli import nn


class Branches(nn.Module):
    """Two layers, one of them under two names, and a parameter."""

    def __init__(self):
        self.scale = nn.Parameter(2.0)
        self.first = nn.Linear(3, 2)
        self.again = self.first
        self.rest = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Linear(2, 1, bias=False))])

    def forward(self, x, shift=0.0):
        y = self.first(x) * self.scale + shift
        for module in self.rest:
            y = module(y)
        return y


class TestParameters:
    def test_are_leaves_that_require_grad(self):
        p = nn.Parameter([1.0, 2.0])
        assert isinstance(p, gradcli.Tensor)
        assert p.requires_grad
        assert p.is_leaf
        assert repr(p) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"
        assert not nn.Parameter([1, 2], requires_grad=False).requires_grad
        assert type(p * 2) is gradcli.Tensor

    def test_have_numbers_of_their_own(self):
        x = gradcli.tensor([1.0, 2.0])
        nn.Parameter(x).data.zero_()
        assert x.tolist() == [1.0, 2.0]

    def test_are_found_once_by_their_first_names(self):
        names = [name for name, _ in Branches().named_parameters()]
        assert names == ["scale", "first.weight", "first.bias", "rest.0.1.weight"]
        assert [name for name, _ in Branches().named_parameters(recurse=False)] == ["scale"]

    def test_of_a_linear_layer_are_drawn_after_a_seed(self):
        gradcli.manual_seed(1)
        one = nn.Linear(4, 3)
        gradcli.manual_seed(1)
        other = nn.Linear(4, 3)
        assert one.weight.tolist() == other.weight.tolist()
        assert one.weight.shape == (3, 4)
        assert one.bias.shape == (3,)
        assert abs(one.weight.detach().numpy()).max() <= 0.5


class TestModules:
    def test_compute(self):
        model = Branches()
        x = gradcli.tensor([[1.0, 2.0, 3.0]])
        first = x.numpy() @ model.first.weight.detach().numpy().T + model.first.bias.detach().numpy()
        expected = np.maximum(2 * first + 1, 0) @ model.rest[0][1].weight.detach().numpy().T
        assert np.allclose(model(x, shift=1.0).detach().numpy(), expected)
        assert model(x).shape == (1, 1)

    def test_without_forward_say_so(self):
        with pytest.raises(
            NotImplementedError, match=r'^Module \[Module\] is missing the required "forward" function$'
        ):
            nn.Module()(1.0)

    def test_name_their_parts(self):
        model = Branches()
        assert [name for name, _ in model.named_modules()] == ["", "first", "rest", "rest.0", "rest.0.0", "rest.0.1"]
        assert [*model.children()] == [model.first, model.rest]
        assert len(model.rest[0]) == 2
        assert repr(model.rest[0]) == (
            "Sequential(\n  (0): ReLU()\n  (1): Linear(in_features=2, out_features=1, bias=False)\n)"
        )

    def test_train_and_evaluate_together(self):
        model = Branches()
        assert model.training
        assert model.eval() is model
        assert not any(module.training for module in model.modules())
        assert model.train().rest[0].training

    def test_are_applied_to_the_innermost_first(self):
        seen = []
        Branches().apply(lambda module: seen.append(type(module).__name__))
        assert seen == ["Linear", "ReLU", "Linear", "Sequential", "ModuleList", "Branches"]

    def test_forget_gradients_and_need_none(self):
        model = Branches()
        model(gradcli.tensor([1.0, 1.0, 1.0])).sum().backward()
        model.zero_grad(set_to_none=False)
        assert model.scale.grad.item() == 0.0
        model.zero_grad()
        assert model.scale.grad is None
        assert not model.requires_grad_(False)(gradcli.tensor([1.0, 1.0, 1.0])).requires_grad

    def test_give_and_take_their_numbers(self):
        model, other = Branches(), Branches()
        x = gradcli.tensor([0.5, 1.0, 2.0])
        other.load_state_dict(model.state_dict())
        assert other(x).tolist() == model(x).tolist()
        assert other.first.weight is not model.first.weight
        message = (
            "Error(s) in loading state_dict for Linear:\n"
            '\tMissing key(s) in state_dict: "bias". \n\tUnexpected key(s) in state_dict: "scale". '
        )
        with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
            nn.Linear(1, 1).load_state_dict({"weight": gradcli.tensor([[1.0]]), "scale": gradcli.tensor(1.0)})

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_are_copied_and_pickled(self, copied):
        model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Sigmoid())
        other = copied(model)
        x = gradcli.tensor([0.5, 1.0])
        assert other(x).tolist() == model(x).tolist()
        other(x).sum().backward()
        assert isinstance(other[0].weight, nn.Parameter)
        assert model[0].weight.grad is None


def test_a_network_of_two_layers_learns_exclusive_or():
    gradcli.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    x = gradcli.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    target = gradcli.tensor([[0.0], [1.0], [1.0], [0.0]])
    for _ in range(200):
        loss = nn.MSELoss()(model(x), target)
        model.zero_grad()
        loss.backward()
        with gradcli.no_grad():
            for parameter in model.parameters():
                parameter -= 0.3 * parameter.grad
    assert loss.item() < 1e-2
    assert np.round(model(x).detach().numpy()).tolist() == target.tolist()


class TestUtilities:
    def test_pad_sequences(self):
        parts = [gradcli.tensor([[1.0, 2.0]], requires_grad=True), gradcli.tensor([[3.0, 4.0], [5.0, 6.0]])]
        made = nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)
        assert made.tolist() == [[[1.0, 2.0], [-1.0, -1.0]], [[3.0, 4.0], [5.0, 6.0]]]
        assert nn.utils.rnn.pad_sequence(parts, padding_side="left").tolist() == [
            [[0.0, 0.0], [3.0, 4.0]],
            [[1.0, 2.0], [5.0, 6.0]],
        ]
        made.sum().backward()
        assert parts[0].grad.tolist() == [[1.0, 1.0]]
        back = nn.utils.rnn.unpad_sequence(made, [1, 2], batch_first=True)
        assert [x.tolist() for x in back] == [x.tolist() for x in parts]

    def test_bring_parameters_into_a_vector_and_back(self):
        model, other = nn.Linear(2, 2), nn.Linear(2, 2)
        vector = nn.utils.parameters_to_vector(model.parameters())
        assert vector.requires_grad
        nn.utils.vector_to_parameters(vector, other.parameters())
        assert other.weight.tolist() == model.weight.tolist()
        with pytest.raises(ValueError, match="too short for the parameters"):
            nn.utils.vector_to_parameters(vector[:4], other.parameters())

    def test_clip_gradients(self):
        p, q = (gradcli.tensor([3.0, -4.0], requires_grad=True) for _ in range(2))
        p.grad, q.grad = gradcli.tensor([3.0, 0.0]), gradcli.tensor([0.0, 4.0])
        assert nn.utils.clip_grad_norm_([p, q], 1.0).item() == pytest.approx(5.0)
        assert p.grad.tolist() == pytest.approx([0.6, 0.0], rel=1e-5)
        nn.utils.clip_grad_value_([p, q], 0.5)
        assert (p.grad.tolist(), q.grad.tolist()) == ([0.5, 0.0], [0.0, 0.5])
        p.grad = gradcli.tensor([float("inf"), 0.0])
        with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
            nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


class TestRegistries:
    def test_know_buffers(self):
        model = nn.Module()
        model.register_buffer("seen", gradcli.zeros(2))
        model.register_buffer("hidden", gradcli.zeros(1), persistent=False)
        assert [name for name, _ in model.named_buffers()] == ["seen", "hidden"]
        assert list(model.state_dict()) == ["seen"]
        model.seen = gradcli.ones(2)
        assert model.state_dict()["seen"].tolist() == [1.0, 1.0]
        assert model.to(gradcli.float32).seen.dtype == "float32"
        with pytest.raises(
            TypeError, match=r"cannot assign 'list' as buffer 'seen' \(gradcli.Tensor or None expected\)"
        ):
            model.seen = [1.0]
        with pytest.raises(KeyError, match="attribute 'forward' already exists"):
            model.register_buffer("forward", None)

    def test_keep_what_they_are_for(self):
        model = nn.Linear(2, 1)
        with pytest.raises(TypeError, match=r"cannot assign 'Tensor' as parameter 'weight'"):
            model.weight = gradcli.zeros(1, 2)
        model.weight = nn.Parameter(gradcli.ones(1, 2))
        assert [name for name, _ in model.named_parameters()] == ["weight", "bias"]
        model.bias = None
        assert list(model.state_dict()) == ["weight"]
        del model.weight
        assert not hasattr(model, "weight")
        with pytest.raises(KeyError, match=r"module name can.+t contain"):
            model.add_module("a.b", nn.ReLU())

    def test_of_shared_parameters_save_each_name(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = model[0].weight
        assert len([*model.parameters()]) == 3
        assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]

    def test_are_loaded_from_arrays_of_other_libraries(self):
        model = nn.Linear(2, 1)
        found = model.load_state_dict({"weight": np.array([[1.0, 2.0]]), "extra": np.zeros(1)}, strict=False)
        assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["extra"])
        assert model.weight.tolist() == [[1.0, 2.0]]
        with pytest.raises(RuntimeError, match=r"size mismatch for weight: .*shape \[1\] from checkpoint"):
            model.load_state_dict({"weight": np.zeros(1)}, strict=False)

    def test_call_hooks_around_forward(self):
        model, seen = nn.Linear(1, 1), []
        with model.register_forward_hook(lambda module, given, result: seen.append((given[0].item(), result.shape))):
            handle = model.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
            model(gradcli.tensor([3.0]))
            handle.remove()
        model(gradcli.tensor([3.0]))
        assert seen == [(6.0, (1,))]


class TestWhatIsDrawn:
    def test_drops_out_in_training_alone(self):
        gradcli.manual_seed(0)
        x = gradcli.ones(200, 50, requires_grad=True)
        layer = nn.Dropout(0.2)
        y = layer(x)
        assert set(np.unique(y.detach().numpy())) == {0.0, 1.25}
        assert y.mean().item() == pytest.approx(1.0, abs=0.02)
        y.sum().backward()
        assert x.grad.tolist() == y.tolist()
        assert layer.eval()(x) is x

    def test_drops_whole_channels(self):
        gradcli.manual_seed(0)
        y = nn.Dropout2d()(gradcli.ones(20, 30, 2, 2)).numpy()
        assert (y == y[:, :, :1, :1]).all()
        assert set(np.unique(y)) == {0.0, 2.0}

    def test_keeps_mean_and_variance_of_selu(self):
        gradcli.manual_seed(0)
        y = nn.AlphaDropout(0.3)(gradcli.randn(300, 300))
        assert y.mean().item() == pytest.approx(0.0, abs=0.02)
        assert y.std().item() == pytest.approx(1.0, abs=0.02)

    def test_is_orthogonal(self):
        gradcli.manual_seed(0)
        weight = nn.init.orthogonal_(gradcli.empty(3, 5), gain=2.0).numpy()
        assert np.allclose(weight @ weight.T, 4 * np.eye(3))
