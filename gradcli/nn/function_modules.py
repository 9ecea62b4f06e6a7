"""The base class of modules without parameters: a function of `nn.functional` with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from gradcli.errors import CallError
from gradcli.nn import functional
from gradcli.nn.module import Module

# Marks a setting without a default.
REQUIRED = object()


def defaults(**settings: Any) -> Mapping[str, Any]:
    """The settings of a module in the order of its arguments, with their defaults."""
    return MappingProxyType(settings)


class FunctionModule(Module):
    """A module that applies a function of `functional`. A subclass defines `function`, `settings` (in the order of the
    constructor's arguments, with defaults), and in `shown` the settings in its repr."""

    function: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = defaults()
    shown: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if len(given) > len(self.settings):
            raise CallError(f"{name} takes at most {len(self.settings)} arguments, and {len(given)} are given")
        chosen = dict(zip(self.settings, given))
        for keyword, value in named.items():
            if keyword not in self.settings:
                raise CallError(f"{name} got an unexpected keyword argument '{keyword}'")
            if keyword in chosen:
                raise CallError(f"{name} got multiple values for argument '{keyword}'")
            chosen[keyword] = value
        for setting, default in self.settings.items():
            value = chosen.get(setting, default)
            if value is REQUIRED:
                raise CallError(f"{name} is missing the argument '{setting}'")
            self.set(setting, value)

    def set(self, name: str, value: Any) -> None:
        """Store a setting."""
        setattr(self, name, value)

    def forward(self, *operands: Any, **named: Any) -> Any:
        chosen = {name: getattr(self, name) for name in self.settings}
        return getattr(functional, self.function)(*operands, **named, **chosen)

    def extra_repr(self) -> str:
        shown = self.settings if self.shown is None else self.shown
        return ", ".join(f"{name}={getattr(self, name)}" for name in shown)
