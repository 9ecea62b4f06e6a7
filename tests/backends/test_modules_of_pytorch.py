"""`gradcli.nn`, `optim` and `distributions` beside PyTorch: from the same parameters, the same numbers."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import gradcli
from gradcli import nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.usefixtures("float64")


def drawn(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def labels(*shape, count, seed=0):
    return np.random.default_rng(seed).integers(0, count, shape)


def varies(value):
    """Whether numbers are to be differentiated by, as signs are not."""
    return value.dtype == float and not np.isin(value, (-1.0, 1.0)).all()


def ours(value):
    if isinstance(value, np.ndarray):
        return gradcli.tensor(value, requires_grad=varies(value))
    return tuple(map(ours, value)) if isinstance(value, tuple) else value


def theirs(value):
    if isinstance(value, np.ndarray):
        return torch.tensor(value, requires_grad=varies(value))
    return tuple(map(theirs, value)) if isinstance(value, tuple) else value


def tensors(value):
    """The tensors in nested results, in order."""
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors(item)]
    return [value] if hasattr(value, "detach") else []


def same(one, other, what="", rtol=1e-10):
    assert tuple(one.shape) == tuple(other.shape), what
    np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=rtol, atol=1e-12, err_msg=what)


IMAGE, SIGNAL = drawn(2, 4, 6, 5), drawn(2, 4, 7)
VOLUME = drawn(2, 2, 4, 5, 3)
ROWS, TARGET = drawn(5, 3), drawn(5, 3, seed=1)
POSITIVE = drawn(5, 3, low=0.1, high=0.9)
SHARES = POSITIVE / POSITIVE.sum(1, keepdims=True)
SIGNS = np.where(drawn(5, seed=2) > 0, 1.0, -1.0)
SEQUENCE = drawn(6, 2, 3)
WORDS = labels(2, 4, count=5)
MASK = np.triu(np.ones((6, 6)), 1) > 0
PADDED = np.array([[False] * 5 + [True], [False] * 4 + [True] * 2])

# Of a module its name, the arguments that make it, and the inputs of a call; a dict among those has its keywords.
LAYERS = [
    ("Identity", (54, {"unused": 1}), (ROWS,)),
    ("Linear", (3, 4), (ROWS,)),
    ("Linear", (3, 4, {"bias": False}), (SEQUENCE,)),
    ("Bilinear", (3, 3, 4), (ROWS, TARGET)),
    ("Flatten", (), (IMAGE,)),
    ("Flatten", (0, 1), (IMAGE,)),
    ("Unflatten", (1, (2, 2)), (IMAGE,)),
    ("Embedding", (5, 3), (WORDS,)),
    ("Embedding", (5, 3, {"padding_idx": -1}), (np.array([[4, 0, 1], [2, 4, 4]]),)),
    ("CosineSimilarity", (), (ROWS, TARGET)),
    ("PairwiseDistance", (2.0,), (ROWS, TARGET)),
    ("Conv1d", (4, 6, 3, {"stride": 2, "padding": 1}), (SIGNAL,)),
    ("Conv1d", (4, 2, 3, {"padding": "same", "dilation": 2}), (SIGNAL,)),
    ("Conv1d", (4, 2, 3), (SIGNAL[0],)),
    ("Conv2d", (4, 6, 3), (IMAGE,)),
    ("Conv2d", (4, 6, (3, 2), {"stride": (2, 1), "padding": (1, 0), "groups": 2, "bias": False}), (IMAGE,)),
    ("Conv2d", (4, 2, 3, {"padding": 1, "padding_mode": "reflect"}), (IMAGE,)),
    ("Conv2d", (4, 2, (2, 3), {"padding": "same", "padding_mode": "circular"}), (IMAGE,)),
    ("Conv2d", (4, 2, (2, 3), {"padding": (1, 2), "padding_mode": "replicate"}), (IMAGE,)),
    ("Conv3d", (2, 3, 2), (VOLUME,)),
    ("ConvTranspose1d", (4, 3, 3, {"stride": 2, "padding": 1, "output_padding": 1}), (SIGNAL,)),
    ("ConvTranspose2d", (4, 2, 3, {"stride": 2, "groups": 2}), (IMAGE,)),
    ("ConvTranspose2d", (4, 2, 3, {"stride": 2}), (IMAGE, {"output_size": (14, 12)})),
    ("ConvTranspose3d", (2, 3, 2), (VOLUME,)),
    ("MaxPool1d", (2,), (SIGNAL,)),
    ("MaxPool2d", (2, {"stride": 1}), (IMAGE,)),
    ("MaxPool2d", (2, 2, {"return_indices": True}), (IMAGE,)),
    ("MaxPool3d", (2,), (VOLUME,)),
    ("AvgPool1d", (3, {"stride": 2, "padding": 1}), (SIGNAL,)),
    ("AvgPool2d", (2, {"ceil_mode": True}), (IMAGE,)),
    ("AvgPool3d", (2,), (VOLUME,)),
    ("AdaptiveAvgPool1d", (3,), (SIGNAL,)),
    ("AdaptiveAvgPool2d", ((2, 3),), (IMAGE,)),
    ("AdaptiveAvgPool3d", (2,), (VOLUME,)),
    ("AdaptiveMaxPool1d", (3,), (SIGNAL,)),
    ("AdaptiveMaxPool2d", ((2, 3), {"return_indices": True}), (IMAGE,)),
    ("AdaptiveMaxPool3d", (2,), (VOLUME,)),
    ("LPPool1d", (2, 3, {"stride": 2}), (SIGNAL,)),
    ("LPPool2d", (2.0, (2, 1)), (IMAGE,)),
    ("MaxUnpool2d", (2, 3, 1), (IMAGE[:, :, :2, :2].copy(), np.tile([[0, 1], [4, 8]], (2, 4, 1, 1)))),
    ("RReLU", (0.1, 0.1), (SIGNAL,)),
    ("LayerNorm", (3,), (ROWS,)),
    ("LayerNorm", ([6, 5], {"bias": False, "eps": 1e-3}), (IMAGE,)),
    ("LayerNorm", (3, {"elementwise_affine": False}), (ROWS,)),
    ("RMSNorm", (3,), (ROWS,)),
    ("GroupNorm", (2, 4), (IMAGE,)),
    ("GroupNorm", (1, 4, {"affine": False}), (SIGNAL,)),
    ("BatchNorm1d", (3,), (ROWS,)),
    ("BatchNorm1d", (4, {"momentum": None}), (SIGNAL,)),
    ("BatchNorm2d", (4, {"momentum": 0.3, "eps": 1e-2}), (IMAGE,)),
    ("BatchNorm2d", (4, {"affine": False, "track_running_stats": False}), (IMAGE,)),
    ("BatchNorm3d", (2,), (VOLUME,)),
    ("InstanceNorm1d", (4, {"affine": True}), (SIGNAL,)),
    ("InstanceNorm2d", (4, {"track_running_stats": True}), (IMAGE,)),
    ("InstanceNorm2d", (4,), (IMAGE[0],)),
    ("InstanceNorm3d", (2,), (VOLUME,)),
    ("LocalResponseNorm", (2,), (IMAGE,)),
    ("Dropout", (0.0,), (ROWS,)),
    ("ReLU", (), (ROWS,)),
    ("ReLU6", (), (ROWS,)),
    ("ELU", (0.5,), (ROWS,)),
    ("CELU", (0.5,), (ROWS,)),
    ("SELU", (), (ROWS,)),
    ("LeakyReLU", (0.2,), (ROWS,)),
    ("SiLU", (), (ROWS,)),
    ("Mish", (), (ROWS,)),
    ("GELU", (), (ROWS,)),
    ("GELU", ({"approximate": "tanh"},), (ROWS,)),
    ("Hardtanh", (-0.5, 1.5), (ROWS,)),
    ("Hardsigmoid", (), (ROWS,)),
    ("Hardswish", (), (ROWS,)),
    ("Threshold", (0.1, 20.0), (ROWS,)),
    ("Sigmoid", (), (ROWS,)),
    ("Tanh", (), (ROWS,)),
    ("LogSigmoid", (), (ROWS,)),
    ("Softsign", (), (ROWS,)),
    ("Tanhshrink", (), (ROWS,)),
    ("Softplus", (2.0, 3.0), (ROWS,)),
    ("Softshrink", (), (ROWS,)),
    ("Hardshrink", (0.3,), (ROWS,)),
    ("GLU", (1,), (IMAGE,)),
    ("Softmax", (1,), (ROWS,)),
    ("LogSoftmax", ({"dim": 0},), (ROWS,)),
    ("Softmin", (-1,), (ROWS,)),
    ("Softmax2d", (), (IMAGE,)),
    ("PReLU", (), (ROWS,)),
    ("PReLU", (4, {"init": 0.1}), (IMAGE,)),
    ("MSELoss", (), (ROWS, TARGET)),
    ("MSELoss", ({"reduction": "none"},), (ROWS, TARGET)),
    ("L1Loss", ({"reduction": "sum"},), (ROWS, TARGET)),
    ("SmoothL1Loss", ({"beta": 0.5},), (ROWS, TARGET)),
    ("HuberLoss", ({"delta": 0.5},), (ROWS, TARGET)),
    ("CrossEntropyLoss", (), (ROWS, labels(5, count=3))),
    ("CrossEntropyLoss", ({"label_smoothing": 0.1, "ignore_index": 1},), (ROWS, labels(5, count=3))),
    ("CrossEntropyLoss", (), (ROWS, SHARES)),
    ("NLLLoss", (), (ROWS, labels(5, count=3))),
    ("BCELoss", (), (POSITIVE, SHARES)),
    ("BCEWithLogitsLoss", (), (ROWS, SHARES)),
    ("KLDivLoss", ({"reduction": "batchmean"},), (ROWS, SHARES)),
    ("KLDivLoss", ({"log_target": True, "reduction": "sum"},), (ROWS, TARGET)),
    ("GaussianNLLLoss", ({"full": True},), (ROWS, TARGET, POSITIVE)),
    ("PoissonNLLLoss", (), (ROWS, POSITIVE)),
    ("CosineEmbeddingLoss", (0.1,), (ROWS, TARGET, SIGNS)),
    ("HingeEmbeddingLoss", (), (ROWS[:, 0].copy(), SIGNS)),
    ("MarginRankingLoss", (0.2,), (ROWS[:, 0].copy(), ROWS[:, 1].copy(), SIGNS)),
    ("SoftMarginLoss", (), (ROWS[:, 0].copy(), SIGNS)),
    ("MultiMarginLoss", (), (ROWS, labels(5, count=3))),
    ("MultiLabelMarginLoss", ({"reduction": "sum"},), (ROWS, np.array([[1, -1, 0], [2, 0, -1], [0, 1, 2], [-1, 0, 1], [2, -1, -1]]))),
    ("MultiLabelSoftMarginLoss", (), (ROWS, SHARES)),
    ("TripletMarginLoss", (0.5,), (ROWS, TARGET, POSITIVE)),
    ("RNN", (3, 4), (SEQUENCE,)),
    ("RNN", (3, 4, 2, {"nonlinearity": "relu", "bias": False}), (SEQUENCE, drawn(2, 2, 4))),
    ("RNN", (3, 4, {"bidirectional": True, "batch_first": True}), (SEQUENCE,)),
    ("LSTM", (3, 4), (SEQUENCE,)),
    ("LSTM", (3, 4, 2, {"bidirectional": True}), (SEQUENCE, (drawn(4, 2, 4), drawn(4, 2, 4, seed=5)))),
    ("LSTM", (3, 4, 2, {"proj_size": 2, "batch_first": True}), (SEQUENCE,)),
    ("LSTM", (3, 4), (SEQUENCE[:, 0].copy(),)),
    ("GRU", (3, 4, 2), (SEQUENCE, drawn(2, 2, 4))),
    ("GRU", (3, 4, {"bidirectional": True}), (SEQUENCE[:, 0].copy(), drawn(2, 4))),
    ("RNNCell", (3, 4), (ROWS, drawn(5, 4))),
    ("RNNCell", (3, 4, {"nonlinearity": "relu"}), (ROWS[0].copy(),)),
    ("LSTMCell", (3, 4), (ROWS, (drawn(5, 4), drawn(5, 4, seed=3)))),
    ("GRUCell", (3, 4, {"bias": False}), (ROWS,)),
    ("MultiheadAttention", (6, 2), (drawn(6, 2, 6), drawn(5, 2, 6, seed=1), drawn(5, 2, 6, seed=2))),
    ("MultiheadAttention", (6, 3, {"kdim": 4, "vdim": 5, "batch_first": True}), (drawn(2, 6, 6), drawn(2, 5, 4), drawn(2, 5, 5))),
    ("MultiheadAttention", (6, 2, {"add_bias_kv": True, "add_zero_attn": True}), (drawn(6, 2, 6), drawn(6, 2, 6, seed=1), drawn(6, 2, 6, seed=2), {"attn_mask": MASK, "key_padding_mask": PADDED})),
    ("MultiheadAttention", (6, 2, {"bias": False}), (drawn(6, 6), drawn(6, 6, seed=1), drawn(6, 6, seed=2), {"average_attn_weights": False, "attn_mask": drawn(6, 6, seed=4)})),
    ("TransformerEncoderLayer", (6, 2, 8, 0.0), (drawn(6, 2, 6), {"src_mask": MASK})),
    ("TransformerEncoderLayer", (6, 2, 8, 0.0, "gelu", {"batch_first": True, "norm_first": True}), (drawn(2, 6, 6), {"src_key_padding_mask": PADDED})),
    ("TransformerDecoderLayer", (6, 2, 8, 0.0), (drawn(6, 2, 6), drawn(5, 2, 6), {"tgt_mask": MASK})),
    ("Transformer", (6, 2, 2, 1, 8, 0.0), (drawn(5, 2, 6), drawn(6, 2, 6), {"tgt_mask": MASK})),
    ("ConstantPad1d", (2, 0.5), (SIGNAL,)),
    ("ZeroPad2d", ((1, 0, 2, 1),), (IMAGE,)),
    ("ReflectionPad1d", (2,), (SIGNAL,)),
    ("ReflectionPad2d", (1,), (IMAGE,)),
    ("ReplicationPad2d", (1,), (IMAGE,)),
    ("CircularPad1d", ((1, 2),), (SIGNAL,)),
    ("Upsample", ({"scale_factor": 2},), (IMAGE,)),
    ("Upsample", ({"size": (7, 8), "mode": "bilinear", "align_corners": False},), (IMAGE,)),
    ("UpsamplingNearest2d", ({"scale_factor": 2},), (IMAGE,)),
    ("PixelShuffle", (2,), (IMAGE,)),
    ("PixelUnshuffle", (2,), (IMAGE[:, :, :, :4].copy(),)),
    ("ChannelShuffle", (2,), (IMAGE,)),
    ("Unfold", ((3, 2), {"stride": (2, 1), "padding": (1, 0)}), (IMAGE,)),
    ("Unfold", (2, {"dilation": 2}), (IMAGE[0].copy(),)),
    ("Fold", ((6, 5), (3, 2), {"stride": (1, 2), "padding": (1, 1)}), (drawn(2, 12, 18),)),
]  # fmt: skip


IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(LAYERS)]


def split(arguments):
    if arguments and isinstance(arguments[-1], dict):
        return arguments[:-1], arguments[-1]
    return arguments, {}


def pair(name, arguments):
    """A module of PyTorch, and ours with the numbers of its parameters and buffers."""
    positional, named = split(arguments)
    torch.manual_seed(0)
    other = getattr(torch.nn, name)(*positional, **named)
    with torch.no_grad():
        # Where they begin with zeros or ones, others say more.
        for number, parameter in enumerate(other.parameters()):
            parameter += torch.tensor(drawn(*parameter.shape, seed=number)) / 4
    own = getattr(nn, name)(*positional, **named)
    own.load_state_dict(other.state_dict())
    return own, other


def called(module, convert, inputs):
    positional, named = split(inputs)
    given = tuple(map(convert, positional))
    return module(*given, **{key: convert(value) for key, value in named.items()}), given


def compared(own, other, inputs):
    """One call of each, and the gradients of a weighted sum of the results; of Hardsigmoid PyTorch has the slope 1/6 in
    the digits of float32 alone."""
    found, given = called(own, ours, inputs)
    expected, given_there = called(other, theirs, inputs)
    found, expected = tensors(found), tensors(expected)
    assert len(found) == len(expected)
    losses = [0.0, 0.0]
    for number, (y, z) in enumerate(zip(found, expected)):
        same(y, z, f"result {number}")
        if z.is_floating_point() and z.requires_grad:
            weights = drawn(*z.shape, seed=number + 7)
            losses[0] = losses[0] + (y * weights).sum()
            losses[1] = losses[1] + (z * torch.tensor(weights)).sum()
    if isinstance(losses[1], float):
        return
    losses[0].backward()
    losses[1].backward()
    for (name, p), (same_name, q) in zip(own.named_parameters(), other.named_parameters(), strict=True):
        assert name == same_name
        if q.grad is not None:
            same(p.grad, q.grad, name)
    for x, y in zip(tensors(given), tensors(given_there)):
        if y.grad is not None:
            same(x.grad, y.grad, "an input", 1e-7 if isinstance(other, torch.nn.Hardsigmoid) else 1e-10)


@pytest.mark.cases(60)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize(("name", "arguments", "inputs"), LAYERS, ids=IDS)
def test_a_module_is_that_of_pytorch(name, arguments, inputs):
    own, other = pair(name, arguments)
    assert list(own.state_dict()) == list(other.state_dict())
    assert repr(own) == repr(other).replace("NonDynamicallyQuantizableLinear", "Linear")
    assert len(own.load_state_dict(other.state_dict()).missing_keys) == 0
    compared(own, other, inputs)
    for (key, x), y in zip(own.state_dict().items(), other.state_dict().values()):
        same(x, y, key)
    own.zero_grad()
    other.zero_grad()
    compared(own.eval(), other.eval(), inputs)


@pytest.mark.cases(60)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize(("name", "arguments"), [case[:2] for case in LAYERS], ids=IDS)
def test_parameters_begin_as_those_of_pytorch(name, arguments):
    """From one seed the same numbers, and those that come after them."""
    positional, named = split(arguments)
    made = []
    for library in (gradcli, torch):
        library.manual_seed(5)
        made.append((getattr(library.nn, name)(*positional, **named).state_dict(), library.rand(2)))
    (own, next_own), (other, next_other) = made
    for key, value in other.items():
        same(own[key], value, key, 1e-6)
    same(next_own, next_other)


# Of an optimizer its name and options.
OPTIMIZERS = [
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.02, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.02, "amsgrad": True}),
    ("RMSprop", {"lr": 0.02, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"lr": 0.7, "weight_decay": 0.01}),
    ("Adafactor", {"lr": 0.3}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-3, 0.2), "d": 1.5, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.05, "maximize": True}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.01, "maximize": True}),
    ("NAdam", {"lr": 0.03, "weight_decay": 0.01}),
    ("NAdam", {"lr": 0.03, "weight_decay": 0.01, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.03, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.02, "step_sizes": (1e-3, 0.1)}),
    ("ASGD", {"lr": 0.1, "lambd": 0.02, "t0": 8, "weight_decay": 0.01}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(OPTIMIZERS)])
def test_steps_of_an_optimizer_are_those_of_pytorch(name, options):
    own, other = pair("Sequential", ())
    own.append(nn.Linear(3, 4)).append(nn.Tanh()).append(nn.Linear(4, 3))
    other.append(torch.nn.Linear(3, 4)).append(torch.nn.Tanh()).append(torch.nn.Linear(4, 3))
    own.load_state_dict(other.state_dict())
    loops = []
    for library, model, convert in ((gradcli, own, gradcli.tensor), (torch, other, torch.tensor)):
        optimizer = getattr(library.optim, name)(model.parameters(), **options)
        loops.append((optimizer, closure(library, model, optimizer, convert(ROWS), convert(TARGET))))
    for _ in range(20):
        losses = [optimizer.step(loss).item() for optimizer, loss in loops]
        assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    for p, q in zip(own.parameters(), other.parameters()):
        same(p, q, rtol=1e-8)


@pytest.mark.parametrize("options", [{"beta2_decay": 0.1}, {"eps": (-1.0, 0.1)}, {"eps": (None, -1.0)}, {"d": 0.5}])
def test_options_of_adafactor_are_checked_as_in_pytorch(options):
    messages = []
    for library in (gradcli, torch):
        with pytest.raises(ValueError, match="should be") as caught:
            library.optim.Adafactor([library.ones(2, requires_grad=True)], **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_adafactor_moves_tensors_of_any_number_of_axes():
    for shape in ((), (3,), (2, 3), (2, 1, 3)):
        ends = []
        for library in (gradcli, torch):
            x = library.linspace(0.5, 2.0, math.prod(shape), dtype=library.float32).reshape(shape)
            x = x.detach().requires_grad_()
            optimizer = library.optim.Adafactor([x], lr=0.1)
            for _ in range(5):
                optimizer.zero_grad()
                (x**3).sum().backward()
                optimizer.step()
            ends.append(x)
        same(*ends, rtol=1e-6)


@pytest.mark.parametrize("t0", [0, 3])
def test_the_average_of_asgd_is_that_of_pytorch(t0):
    averages = []
    for library in (gradcli, torch):
        x = library.tensor([1.0, -2.0], requires_grad=True)
        optimizer = library.optim.ASGD([x], lr=0.1, lambd=0.01, t0=t0)
        for _ in range(6):
            optimizer.zero_grad()
            (x**2).sum().backward()
            optimizer.step()
        averages.append(optimizer.state[x]["ax"])
    same(*averages)


@pytest.mark.parametrize("settings", [{}, {"hard": True}, {"hard": True, "dim": 0, "tau": 0.5}])
def test_gumbel_noise_is_that_of_pytorch(settings):
    found = []
    for library in (gradcli, torch):
        library.manual_seed(0)
        logits = library.tensor(ROWS, dtype=library.float64, requires_grad=True)
        drawn = library.nn.functional.gumbel_softmax(logits, **settings)
        (drawn * library.tensor(TARGET, dtype=library.float64)).sum().backward()
        found.append((drawn.detach().numpy(), logits.grad.numpy()))
    for own, other in zip(*found):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


COMPLEX = [("Adam", {"amsgrad": True}), ("AdamW", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {"centered": True}), ("Adagrad", {}),
    ("Adamax", {}), ("Adadelta", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("LBFGS", {}), ("LBFGS", {"line_search_fn": "strong_wolfe"})]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=lambda value: value if isinstance(value, str) else "")
def test_complex_parameters_move_as_pairs_of_numbers(name, options):
    found = []
    for library in (gradcli, torch):
        z = library.tensor([1 + 2j, 3 - 1j], dtype=library.complex128, requires_grad=True)
        optimizer = getattr(library.optim, name)([z], lr=0.1, **options)

        def loss(library=library, z=z, optimizer=optimizer):
            optimizer.zero_grad()
            value = (z.abs() ** 2).sum() + 0.01 * (z**3).real.sum()
            value.backward()
            return value

        for _ in range(4):
            optimizer.step(loss)
        state = optimizer.state_dict()["state"][0]
        found.append([z.tolist(), *(v.tolist() for v in state.values() if getattr(v, "shape", None) == z.shape)])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_an_option_that_is_required_must_be_given():
    for library in (gradcli, torch):
        base = importlib.import_module(f"{library.__name__}.optim.optimizer")

        class Own(base.Optimizer):
            def __init__(self, params, lr=base.required):
                super().__init__(params, {"lr": lr})

        assert Own([library.ones(2)], 0.5).param_groups[0]["lr"] == 0.5
        with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
            Own([library.ones(2)])


@pytest.mark.parametrize("gradients", [[1.0, 2.0], [1.0, float("inf")]])
def test_scaled_losses_move_parameters_as_in_pytorch(gradients):
    found = []
    for library in (gradcli, torch):
        x = library.tensor([0.5, -0.5], requires_grad=True)
        optimizer = library.optim.SGD([x], lr=0.1)
        scaler = library.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale((x * library.tensor(gradients)).sum()).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        off = library.amp.GradScaler("cuda", enabled=False)
        found.append((x.tolist(), scaler.get_scale(), off.scale(3), off.get_scale(), off.state_dict()))
        assert scaler.state_dict().keys() >= {"scale", "growth_factor", "_growth_tracker"}
        with pytest.warns(UserWarning, match="CUDA is not available|cuda is not available"):
            assert not library.amp.GradScaler().is_enabled()
        with library.autocast("cpu", enabled=False):
            assert (x * 1).dtype == x.dtype
    assert found[0] == found[1]
    with pytest.raises(gradcli.GradcliError, match="autocast does not compute in bfloat16"):
        gradcli.autocast("cpu")


class Product(gradcli.nn.Module):
    def forward(self, a, b=1.0):
        return a * b


class ProductOfPyTorch(torch.nn.Module):
    forward = Product.forward


def test_hooks_of_a_module_are_called_as_in_pytorch():
    found = []
    for library, layer in ((gradcli, Product()), (torch, ProductOfPyTorch())):
        calls = []

        def with_factor(module, arguments, keywords):
            return arguments, {**keywords, "b": 3.0}

        def plus_one(module, arguments, keywords, output, calls=calls):
            calls.append([*keywords])
            return output + 1

        def show(module, before, after, calls=calls):
            calls.append((before[0].tolist(), after[0].tolist()))

        layer.register_forward_pre_hook(lambda module, arguments, calls=calls: calls.append("second"))
        layer.register_forward_pre_hook(with_factor, with_kwargs=True, prepend=True)
        layer.register_forward_hook(plus_one, with_kwargs=True)
        layer.register_full_backward_pre_hook(lambda module, gradients: (gradients[0] * 2,))
        layer.register_full_backward_hook(show)
        x = library.tensor([1.0, 2.0], requires_grad=True)
        y = layer(x)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist(), calls))
    assert found[0] == found[1]


def closure(library, model, optimizer, x, target):
    def loss():
        optimizer.zero_grad()
        found = library.nn.functional.mse_loss(model(x), target)
        found.backward()
        library.nn.utils.clip_grad_norm_(model.parameters(), 0.8)
        return found

    return loss


# Of a scheduler its name and options; a function of the module gives those that others are part of.
SCHEDULERS = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1.0 / (1 + epoch)}),
    ("StepLR", {"step_size": 4, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [3, 7, 7], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 6}),
    ("LinearLR", {"start_factor": 0.25, "end_factor": 0.9, "total_iters": 7}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 9, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 4, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": [0.1, 0.2], "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 21}),
    ("OneCycleLR", {"max_lr": [0.5, 0.2], "epochs": 3, "steps_per_epoch": 8, "anneal_strategy": "linear", "three_phase": True}),
]  # fmt: skip


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "options"), SCHEDULERS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(SCHEDULERS)])
def test_rates_of_a_scheduler_are_those_of_pytorch(name, options, optimizer):
    found = [rates(library, optimizer, lambda m, o: getattr(m, name)(o, **options)) for library in (gradcli, torch)]
    np.testing.assert_allclose(*found, rtol=1e-12)


def rates(library, optimizer, made, steps=20):
    """The rate and the momentum of both groups of an optimizer in each step of a scheduler."""
    p, q = (library.tensor([1.0], requires_grad=True) for _ in range(2))
    options = {"momentum": 0.5} if optimizer == "SGD" else {}
    optimizer = getattr(library.optim, optimizer)([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.1, **options)
    scheduler = made(library.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        optimizer.step()
        groups = optimizer.param_groups
        found.append([*scheduler.get_last_lr(), *(g["lr"] for g in groups)])
        found[-1] += [g["betas"][0] if "betas" in g else g["momentum"] for g in groups]
        scheduler.step()
    return found


SEVERAL = {
    "sequence": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1, 2), m.ExponentialLR(o, 0.9), m.CosineAnnealingLR(o, 5)], [4, 11]
    ),
    "chain": lambda m, o: m.ChainedScheduler([m.LinearLR(o, 0.5, total_iters=4), m.StepLR(o, 3)]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_rates_of_several_schedulers_are_those_of_pytorch(name):
    np.testing.assert_allclose(*(rates(library, "SGD", SEVERAL[name]) for library in (gradcli, torch)), rtol=1e-12)


@pytest.mark.parametrize("options", [{"patience": 1}, {"mode": "max", "cooldown": 2, "patience": 0, "min_lr": [0.01, 0.02]},
                                     {"threshold_mode": "abs", "threshold": 0.3, "factor": 0.5, "patience": 2}], ids=str)  # fmt: skip
def test_a_plateau_is_that_of_pytorch(options):
    metrics = [3.0, 2.0, 1.9, 1.9, 1.95, 1.8, 1.8, 1.8, 1.7, 1.2, 1.19, 1.18, 1.3, 1.3, 1.3, 0.9]
    found = []
    for library in (gradcli, torch):
        p, q = (library.tensor([1.0], requires_grad=True) for _ in range(2))
        optimizer = library.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.1)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        steps = []
        for metric in metrics:
            scheduler.step(library.tensor(metric))
            steps.append(scheduler.get_last_lr())
        found.append(steps)
    assert found[0] == pytest.approx(np.array(found[1]))


@pytest.mark.parametrize(
    ("name", "options"), SCHEDULERS[2:], ids=[f"{n}-{i}" for i, (n, _) in enumerate(SCHEDULERS[2:])]
)
def test_a_schedule_goes_on_from_its_state(name, options):
    def made():
        p, q = (gradcli.tensor([1.0], requires_grad=True) for _ in range(2))
        optimizer = gradcli.optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.1)
        return optimizer, getattr(gradcli.optim.lr_scheduler, name)(optimizer, **options)

    (first, one), (second, other) = made(), made()
    for _ in range(5):
        one.step()
    second.load_state_dict(first.state_dict())
    other.load_state_dict(one.state_dict())
    for _ in range(5):
        one.step()
        other.step()
        assert one.get_last_lr() == other.get_last_lr()


@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients are computed:UserWarning")
@pytest.mark.parametrize("wanted", [True, False])
def test_backward_hooks_see_what_those_of_pytorch_see(wanted):
    found = []
    for library in (gradcli, torch):
        library.manual_seed(3)
        model = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Tanh(), library.nn.Linear(4, 2))
        seen = []

        def see(module, grad_input, grad_output, seen=seen):
            seen.append([None if g is None else g.tolist() for g in (*grad_input, *grad_output)])

        handles = [layer.register_full_backward_hook(see) for layer in model]
        handles.append(model[2].register_full_backward_hook(lambda module, given, got: (given[0] * 2,)))
        x = library.tensor(ROWS, requires_grad=wanted)
        model(x).pow(2).sum().backward()
        handles[0].remove()
        count = len(seen)
        model(x).pow(2).sum().backward()
        assert (count, len(seen)) == (3, 5)
        found.append([*seen, model[0].weight.grad.tolist(), x.grad.tolist() if wanted else None])
    for one, other in zip(*found, strict=True):
        assert (one is None) is (other is None)
        for x, y in zip(one or [], other or [], strict=True):
            assert (x is None) is (y is None)
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
