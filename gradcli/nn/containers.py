"""Containers of modules and of parameters: lists, dicts and `Sequential`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter


class _ModuleSequence(Module):
    """An ordered container of modules, named by their numbers unless names were given."""

    def append(self, module: Module) -> Self:
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        modules = [*self]
        modules.insert(index, module)
        self._number(modules)
        return self

    def pop(self, key: int) -> Module:
        found: Module = self[key]
        del self[key]
        return found

    def _number(self, modules: Iterable[Module]) -> None:
        self._modules = {str(number): module for number, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part([*self._modules.items()][index])
        return [*self][_place(index, len(self))]

    def _part(self, items: Sequence[tuple[str, Module]]) -> Self:
        """A container with the given named modules, for slices."""
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, [*self._modules][_place(index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        names = [*self._modules]
        gone = names[index] if isinstance(index, slice) else [names[_place(index, len(self))]]
        kept = {name: module for name, module in self._modules.items() if name not in gone}
        # Numbered modules are renumbered; given names are kept.
        if all(name.isdigit() for name in names):
            self._number(kept.values())
        else:
            self._modules = kept

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class ModuleList(_ModuleSequence):
    """A list of modules, named by their numbers."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _part(self, items: Sequence[tuple[str, Module]]) -> Self:
        return type(self)(module for _, module in items)

    def __repr__(self) -> str:
        """Consecutive modules with the same text share one line."""
        runs: list[list[Any]] = []
        for number, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = number
            else:
                runs.append([number, number, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        inside = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{self._get_name()}({inside}\n)"


class Sequential(_ModuleSequence):
    """Modules applied one after the other to the output of the previous one; a dict gives them names."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], Mapping)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.register_module(str(name), module)

    def _part(self, items: Sequence[tuple[str, Module]]) -> Self:
        return type(self)(dict(items))

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class _NamedContents(Module):
    """A container with the methods of a dict."""

    @property
    def _contents(self) -> dict[str, Any]:
        """The modules or parameters by name."""
        raise NotImplementedError

    def keys(self) -> Iterable[str]:
        return self._contents.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._contents.items()

    def values(self) -> Iterable[Any]:
        return self._contents.values()

    def pop(self, key: str) -> Any:
        return self._contents.pop(key)

    def __len__(self) -> int:
        return len(self._contents)

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __contains__(self, key: object) -> bool:
        return key in self._contents

    def update(self, contents: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for name, item in dict(contents).items():
            self[name] = item

    def __setitem__(self, key: str, item: Any) -> None:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self._contents[key]

    def __delitem__(self, key: str) -> None:
        del self._contents[key]


class ModuleDict(_NamedContents):
    """A dict of modules."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    @property
    def _contents(self) -> dict[str, Any]:
        return self._modules

    def clear(self) -> None:
        self._modules.clear()

    def __setitem__(self, key: str, module: Module) -> None:
        if key in self._modules:
            self._modules[key] = module
        else:
            self.register_module(key, module)


class ParameterList(Module):
    """A list of parameters, named by their numbers; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def append(self, value: Any) -> Self:
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        if isinstance(values, Tensor):
            raise CallError("ParameterList.extend should be called with an iterable, but got type Tensor")
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __getitem__(self, index: int | slice) -> Any:
        found = [*self]
        return type(self)(found[index]) if isinstance(index, slice) else found[_place(index, len(found))]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[str(_place(index, len(self)))] = _as_parameter(value)

    def extra_repr(self) -> str:
        return _listed(self._parameters.items())


class ParameterDict(_NamedContents):
    """A dict of parameters; tensors become parameters."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    @property
    def _contents(self) -> dict[str, Any]:
        return self._parameters

    def get(self, key: str, default: Any = None) -> Any:
        return self._parameters.get(key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self._parameters:
            self._parameters[key] = _as_parameter(value)
        else:
            self.register_parameter(key, _as_parameter(value))

    def extra_repr(self) -> str:
        return _listed(self._parameters.items())


def _place(index: Any, count: int) -> int:
    """A list index normalised to 0 … count - 1. Raises IndexError if it is out of range."""
    place = operator.index(index)
    if not -count <= place < count:
        raise IndexError(f"index {place} is out of range")
    return place % count


def _as_parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


def _listed(items: Iterable[tuple[str, Any]]) -> str:
    def size(value: Any) -> str:
        return "x".join(map(str, value.shape)) or "()"

    return "\n".join(f"({name}): Parameter containing: [{value.dtype} of size {size(value)}]" for name, value in items)


class DataParallel(Module):
    """Calls `module`, whose parameters have "module." before their names, as PyTorch's does where there is no GPU."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        """Raises ArgumentError where devices are given."""
        super().__init__()
        if device_ids:
            raise ArgumentError("DataParallel calls its module on the CPU, and has no devices to divide a batch among")
        self.module, self.dim = module, dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.module(*inputs, **named)
