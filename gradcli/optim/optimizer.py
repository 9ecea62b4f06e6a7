"""The base class of optimizers: groups of parameters with options, and a state for each parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gradcli.arrays import is_array
from gradcli.arrays import shape as array_shape
from gradcli.autograd.modes import enable_grad, no_grad
from gradcli.autograd.node import clear_gradients
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError, expect, expect_callable
from gradcli.primitives.entries.elementwise.complex_numbers import view_as_complex, view_as_real

# Tensors, (name, tensor) pairs, or dicts of groups with their own options.
Parameters = Iterable[Any]
Closure = Callable[[], Any]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


# The default of an option that must be given, in optimizers that users write.
required: Any = _Required()


class Optimizer:
    """The base class of all optimizers: a subclass defines `update`, which moves one parameter by its gradient.

    `params` are leaves, or dicts with the leaves as "params" and options that differ from the `defaults`. Raises
    CallError and ArgumentError for parameters that cannot be optimized.

    `numbers` are the options whose values must be numbers.
    """

    numbers = frozenset({"lr", "momentum", "dampening", "weight_decay", "eps", "alpha"})

    def __init__(self, params: Parameters, defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise CallError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor"
            )
        expect(defaults, Mapping, "the defaults of an optimizer are a dict")
        self.defaults = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        expect(params, Iterable, "the parameters of an optimizer are a list of tensors, or of dicts")
        if is_array(params) and not array_shape(params):
            raise CallError("the parameters of an optimizer are a list of tensors, and this is one number")
        groups = [*params]
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group with options that differ from the defaults. Raises ArgumentError for a parameter that is already
        in a group."""
        if not isinstance(param_group, dict):
            raise CallError(f"param_group must be a dict, but got {type(param_group).__name__}")
        given: Any = param_group.get("params")
        expect(given, Iterable, "a group of parameters has them in a list under 'params'")
        members = [given] if isinstance(given, Tensor) else [*given]
        group = {**self.defaults, **param_group, "params": [m[1] if isinstance(m, tuple) else m for m in members]}
        if any(isinstance(m, tuple) for m in members):
            group["param_names"] = [name for name, _ in members]
        for name, value in group.items():
            if value is required:
                raise ArgumentError(f"parameter group didn't specify a value of required optimization parameter {name}")
        known = {id(p) for p in self._parameters()}
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise CallError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}"
                )
            if not parameter.is_leaf:
                raise ArgumentError("can't optimize a non-leaf Tensor")
            if id(parameter) in known:
                raise ArgumentError("some parameters appear in more than one parameter group")
            known.add(id(parameter))
        for name in self.numbers & group.keys():
            expect(group[name], (int, float, Tensor), f"'{name}' is a number")
        self.check(group)
        self.param_groups.append(group)

    def check(self, group: Mapping[str, Any]) -> None:
        """Raise ArgumentError for invalid options."""
        at_least_0(group, "lr", "learning rate")
        at_least_0(group, "weight_decay", "weight_decay value")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to 0."""
        clear_gradients(self._parameters(), set_to_none)

    def step(self, closure: Closure | None = None) -> Any:
        """Move every parameter that has a gradient. A `closure` first computes the loss and the gradients, and the loss
        is returned."""
        loss = None
        if closure is not None:
            expect_callable(closure, "a closure is a function")
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        gradient = -parameter.grad if group["maximize"] else parameter.grad
                        move = self._update_complex if parameter.is_complex() else self.update
                        move(parameter, gradient, self.state[parameter], group)
        return loss

    def _update_complex(
        self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]
    ) -> None:
        """Move a complex parameter as pairs of real numbers, as PyTorch does; its state has complex numbers."""
        pairs: Any = view_as_real(parameter.detach()).clone()
        kept = {n: view_as_real(v) if isinstance(v, Tensor) and v.is_complex() else v for n, v in state.items()}
        self.update(pairs, view_as_real(gradient), kept, group)
        parameter.copy_(view_as_complex(pairs))
        for name, value in kept.items():
            state[name] = view_as_complex(value) if isinstance(value, Tensor) and value.shape == pairs.shape else value

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        """Move a parameter in place by a gradient to descend, using and updating its state."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The states of the parameters by number, and the groups with these numbers, for `load_state_dict`."""
        numbers = {id(p): number for number, p in enumerate(self._parameters())}
        return {
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": [
                {
                    **{k: v for k, v in group.items() if k != "params"},
                    "params": [numbers[id(p)] for p in group["params"]],
                }
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume from the state of an optimizer with the same numbers of parameters. Raises ArgumentError where the
        groups differ."""
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
            raise CallError("a state dict has 'state' and 'param_groups', as state_dict gives it")
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ArgumentError("loaded state dict has a different number of parameter groups")
        if any(len(new["params"]) != len(own["params"]) for new, own in zip(groups, self.param_groups)):
            raise ArgumentError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameters = {
            number: p for new, own in zip(groups, self.param_groups) for number, p in zip(new["params"], own["params"])
        }
        self.state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            self.state[parameters[number]] = {name: _copied(value) for name, value in state.items()}
        self.param_groups = [{**own, **new, "params": own["params"]} for new, own in zip(groups, self.param_groups)]

    def _parameters(self) -> Iterator[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def running_mean(mean: Any, newest: Any, weight: float) -> Any:
    """The moving average with the newest value at `weight`; exactly that value where the weight is 1."""
    return mean + weight * (newest - mean) if weight < 0.5 else newest - (newest - mean) * (1 - weight)


def with_weight_decay(gradient: Any, parameter: Tensor, group: Mapping[str, Any]) -> Any:
    """The gradient of the loss plus the square of the parameter times half of the weight decay."""
    return gradient + group["weight_decay"] * parameter if group["weight_decay"] else gradient


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return [_copied(item) for item in value] if isinstance(value, list) else value


def at_least_0(group: Mapping[str, Any], name: str, what: str) -> None:
    """Raise ArgumentError for a negative option."""
    if name in group and not group[name] >= 0.0:
        raise ArgumentError(f"Invalid {what}: {group[name]}")
