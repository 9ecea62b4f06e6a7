"""Recurrent networks: cells for one step, and layers over sequences.

S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory" (Neural Computation 1997); K. Cho et al., "Learning Phrase
Representations using RNN Encoder-Decoder" (EMNLP 2014) for GRU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError, ShapeError
from gradcli.nn import functional, init
from gradcli.nn.module import Module
from gradcli.nn.parameter import parameter
from gradcli.nn.utils.rnn import PackedSequence
from gradcli.primitives.entries.elementwise.trigonometric import tanh
from gradcli.primitives.entries.exponential import relu, sigmoid
from gradcli.primitives.entries.linear_algebra.linear_systems import linear
from gradcli.primitives.entries.shape import concat, flip, stack

# The state between steps: the hidden state, and for LSTM also the cell state.
State = tuple[Any, ...]


def _rnn_step(nonlinearity: Any) -> Any:
    def step(by_input: Any, by_state: Any, _state: State) -> State:
        return (nonlinearity(by_input + by_state),)

    return step


def _lstm_step(by_input: Any, by_state: Any, state: State) -> State:
    into, forget, new, out = (by_input + by_state).chunk(4, -1)
    cell = sigmoid(forget) * state[1] + sigmoid(into) * tanh(new)
    return sigmoid(out) * tanh(cell), cell


def _gru_step(by_input: Any, by_state: Any, state: State) -> State:
    (reset, update, new), (reset_h, update_h, new_h) = by_input.chunk(3, -1), by_state.chunk(3, -1)
    candidate = tanh(new + sigmoid(reset + reset_h) * new_h)
    share = sigmoid(update + update_h)
    return (candidate + share * (state[0] - candidate),)


_STEPS = {
    "RNN_TANH": (1, _rnn_step(tanh)),
    "RNN_RELU": (1, _rnn_step(relu)),
    "LSTM": (4, _lstm_step),
    "GRU": (3, _gru_step),
}


def _mode(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
    return f"RNN_{nonlinearity.upper()}"


class _Recurrent(Module):
    """The base class of cells and layers: sizes, mode and initialisation."""

    input_size: int
    hidden_size: int
    bias: bool
    mode: str

    def reset_parameters(self) -> None:
        """Draw the weights and biases again, from U(±1/sqrt(hidden_size))."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for drawn in self.parameters():
            init.uniform_(drawn, -bound, bound)


class _Cell(_Recurrent):
    """One step of a recurrent network, for inputs (N, input_size) or (input_size,)."""

    def _begin(self, mode: str, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.bias = mode, input_size, hidden_size, bias
        rows = _STEPS[mode][0] * hidden_size
        self.weight_ih = parameter((rows, input_size), dtype=dtype, device=device)
        self.weight_hh = parameter((rows, hidden_size), dtype=dtype, device=device)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter((rows,), dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def _stepped(self, input: Tensor, state: State | None) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ShapeError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise EvaluationError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}"
            )
        if state is None:
            zeros = input.new_zeros((*input.shape[:-1], self.hidden_size))
            state = (zeros, zeros)
        by_input = linear(input, self.weight_ih, self.bias_ih)
        stepped: State = _STEPS[self.mode][1](by_input, linear(state[0], self.weight_hh, self.bias_hh), state)
        return stepped

    def extra_repr(self) -> str:
        bias = "" if self.bias else ", bias=False"
        nonlinearity = ", nonlinearity=relu" if self.mode == "RNN_RELU" else ""
        return f"{self.input_size}, {self.hidden_size}{bias}{nonlinearity}"


class RNNCell(_Cell):
    """tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        self._begin(_mode(nonlinearity), input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        return self._stepped(input, None if hx is None else (hx,))[0]


class LSTMCell(_Cell):
    """One step of an LSTM: the hidden state and the cell state from the previous ones, initially zeros."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        self._begin("LSTM", input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        return self._stepped(input, hx)


class GRUCell(_Cell):
    """One step of a GRU: the hidden state from the previous one, initially zeros."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        self._begin("GRU", input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        return self._stepped(input, None if hx is None else (hx,))[0]


class _Layers(_Recurrent):
    """Layers of a recurrent network over sequences (L, N, input_size), with `batch_first` (N, L, input_size), or
    unbatched (L, input_size), or packed. The result is the output of the last layer at each step, and the final state of
    each layer."""

    # The number of tensors of a state.
    states: ClassVar[int] = 1

    def _begin(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ArgumentError("dropout should be a number in range [0, 1] representing the probability")
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError("hidden_size and num_layers must be greater than zero")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError("proj_size has to be a positive integer, smaller than hidden_size, or zero")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        rows, given = _STEPS[mode][0] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else given * (1 + bidirectional)
            for end in self._ends(layer):
                shapes: list[tuple[str, tuple[int, ...]]] = [("weight_ih", (rows, width)), ("weight_hh", (rows, given))]
                shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))] if bias else []
                shapes += [("weight_hr", (proj_size, hidden_size))] if proj_size else []
                for name, shape in shapes:
                    setattr(self, name + end, parameter(shape, dtype=dtype, device=device))
        self.reset_parameters()

    def _ends(self, layer: int) -> list[str]:
        """The name suffixes of the parameters of a layer, forward and backward."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def flatten_parameters(self) -> None:
        """Does nothing; for compatibility with PyTorch."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        ends = [end for layer in range(self.num_layers) for end in self._ends(layer)]
        return [[p for name, p in self._parameters.items() if name.partition("_l")[2] == end[2:]] for end in ends]

    def _run(self, input: Any, state: State | None) -> tuple[Any, State]:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, state)
        if input.ndim not in (2, 3):
            raise ShapeError(f"{self.mode}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        self._check_features(input)
        batched = input.ndim == 3
        x: Any = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        x, last = self._through_layers(x, self._begins(x, x.shape[1], state, batched), self._along)
        if not batched:
            return x.squeeze(1), tuple(part.squeeze(1) for part in last)
        return (x.transpose(0, 1) if self.batch_first else x), last

    def _run_packed(self, input: PackedSequence, state: State | None) -> tuple[Any, State]:
        x, counts = input.data, [int(count) for count in input.batch_sizes]
        self._check_features(x)
        if state is not None and input.sorted_indices is not None:
            state = tuple(part.index_select(1, input.sorted_indices) for part in state)
        begins = self._begins(x, counts[0], state, batched=True)
        x, last = self._through_layers(x, begins, functools.partial(self._along_packed, counts))
        if input.unsorted_indices is not None:
            last = tuple(part.index_select(1, input.unsorted_indices) for part in last)
        return input._replace(data=x), last

    def _check_features(self, x: Any) -> None:
        if x.shape[-1] != self.input_size:
            raise EvaluationError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )

    def _through_layers(self, x: Any, begins: State, along: Any) -> tuple[Any, State]:
        """The outputs of the last layer, and the final states of all layers; `along` runs one direction of a layer."""
        ends: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = functional.dropout(x, self.dropout)
            found = [
                along(x, [part[len(ends) + number] for part in begins], end, number == 1)
                for number, end in enumerate(self._ends(layer))
            ]
            x = found[0][0] if len(found) == 1 else concat([y for y, _ in found], -1)
            ends += [last for _, last in found]
        return x, tuple(stack([end[part] for end in ends]) for part in range(self.states))

    def _begins(self, x: Any, rows: int, state: State | None, batched: bool) -> State:
        """The initial states of all layers and directions, stacked along the first axis."""
        count, given = self.num_layers * (1 + self.bidirectional), self.proj_size or self.hidden_size
        wanted = [(count, rows, size) for size in (given, self.hidden_size)[: self.states]]
        if state is None:
            return tuple(x.new_zeros(shape) for shape in wanted)
        begins = state if batched else tuple(part.unsqueeze(1) for part in state)
        for name, part, shape in zip(("hx", "cx"), begins, wanted):
            if tuple(part.shape) != shape:
                raise EvaluationError(f"Expected hidden size {shape}, got {list(part.shape)} for {name}")
        return begins

    def _along(self, x: Any, state: Sequence[Any], end: str, backward: bool) -> tuple[Any, State]:
        """The outputs at each step of one direction of a layer, and the final state."""
        step, found, now = self._step(end), [], tuple(state)
        for part in self._by_input(flip(x, 0) if backward else x, end).unbind(0):
            now = step(part, now)
            found.append(now[0])
        outputs = stack(found)
        return (flip(outputs, 0) if backward else outputs), now

    def _along_packed(
        self, counts: Sequence[int], x: Any, state: Sequence[Any], end: str, backward: bool
    ) -> tuple[Any, State]:
        """Run a layer along packed sequences, as `_along` does along padded ones.

        `counts` has the number of sequences that reach each step. Forward, the state loses the rows of the sequences
        that end; backward, it gains the initial rows of those that begin.
        """
        step, found, ended = self._step(end), [], []
        parts = [*self._by_input(x, end).split(counts, 0)]
        now: State = tuple(part[: counts[-1] if backward else counts[0]] for part in state)
        for part in reversed(parts) if backward else parts:
            rows, have = len(part), len(now[0])
            if rows < have:
                ended.append(tuple(row[rows:] for row in now))
                now = tuple(row[:rows] for row in now)
            elif rows > have:
                now = tuple(concat([row, new[have:rows]], 0) for row, new in zip(now, state))
            now = step(part, now)
            found.append(now[0])
        if ended:
            now = tuple(concat([*rows], 0) for rows in zip(now, *reversed(ended)))
        return concat(found[::-1] if backward else found, 0), now

    def _by_input(self, x: Any, end: str) -> Any:
        return linear(x, self._parameters["weight_ih" + end], self._parameters.get("bias_ih" + end))

    def _step(self, end: str) -> Callable[[Any, State], State]:
        """One step of a direction of a layer: the state from what comes from the input and the previous state."""
        of = self._parameters.get
        compute, projection = _STEPS[self.mode][1], of("weight_hr" + end)
        weight, bias = of("weight_hh" + end), of("bias_hh" + end)

        def step(by_input: Any, now: State) -> State:
            made: State = compute(by_input, linear(now[0], weight, bias), now)
            return made if projection is None else (linear(made[0], projection), *made[1:])

        return step

    def extra_repr(self) -> str:
        parts = [
            f"{self.input_size}, {self.hidden_size}",
            f"proj_size={self.proj_size}" if self.proj_size else "",
            f"num_layers={self.num_layers}" if self.num_layers != 1 else "",
            "" if self.bias else "bias=False",
            "batch_first=True" if self.batch_first else "",
            f"dropout={self.dropout}" if self.dropout else "",
            "bidirectional=True" if self.bidirectional else "",
        ]
        return ", ".join(filter(None, parts))


class RNN(_Layers):
    """Layers of `RNNCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        mode = _mode(nonlinearity)
        self.nonlinearity = nonlinearity
        self._begin(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )  # fmt: skip

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Any]:
        found, last = self._run(input, None if hx is None else (hx,))
        return found, last[0]


class LSTM(_Layers):
    """Layers of `LSTMCell`; hidden states are projected to `proj_size` numbers if that is not 0."""

    states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._begin(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        )  # fmt: skip

    def forward(self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, Any]:
        return self._run(input, hx)


class GRU(_Layers):
    """Layers of `GRUCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._begin(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )  # fmt: skip

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Any]:
        found, last = self._run(input, None if hx is None else (hx,))
        return found, last[0]
