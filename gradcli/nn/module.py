"""A part of a network: a function of tensors with parameters, and with other modules in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.nn.parameter import Parameter


class Module:
    """The base of all modules: a subclass writes `forward`, and is called as a function.

    Attributes that are parameters and modules are found by what they are; the names of parameters within modules are
    joined by dots. Each is given once, however many names it has.
    """

    training = True

    def forward(self, *_arguments: Any, **_keywords: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.forward(*arguments, **keywords)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one."""
        seen: set[Module] = set()
        for name, value in vars(self).items():
            if isinstance(value, Module) and value not in seen:
                seen.add(value)
                yield name, value

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module, and all modules in it."""
        seen: set[Module] = set()
        waiting: list[tuple[str, Module]] = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            yield name, module
            inner = [(_joined(name, n), m) for n, m in module.named_children()]
            waiting += reversed(inner)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module, and with `recurse` those of the modules in it."""
        seen: set[int] = set()
        for place, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, value in vars(module).items():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield _joined(place, name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to 0."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say of all parameters whether they require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set `training` of this module and of all modules in it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        return self.train(False)

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call a function with each module in this one, and with this one at last."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters by their names, without their graphs, sharing their numbers."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Give the parameters the numbers of those in `state`. Raises ArgumentError where the names differ."""
        own = dict(self.named_parameters())
        if own.keys() != state.keys():
            missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
            raise ArgumentError(
                f"Error(s) in loading state_dict for {type(self).__name__}: missing {missing}, unexpected {unexpected}"
            )
        with no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def extra_repr(self) -> str:
        """What stands in the brackets of the text of a module."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self.named_children()]
        inside = "".join(f"\n  {line}" for line in lines) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
