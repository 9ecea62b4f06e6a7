"""Parameters computed from others: a module in the place of a parameter, as `torch.nn.utils.parametrize` has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError
from gradcli.nn.containers import ModuleDict, ModuleList
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter

# Within `cached`, the parametrized tensors that were computed, by module and name.
_computed: ContextVar[dict[tuple[int, str], Any] | None] = ContextVar("gradcli_parametrized_tensors", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Within the block, each parametrized tensor is computed once."""
    token = _computed.set({})
    try:
        yield
    finally:
        _computed.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, which are applied one after another to its original values.

    These are the parameter or buffer `original`, or `original0`, `original1`, … where the `right_inverse` of the first
    parametrization returns several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ArgumentError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            values = _inverted(reversed(modules), original, needed=False)
        self.is_tensor = isinstance(values, Tensor)
        if self.is_tensor:
            _check_alike(values, original, "right_inverse", unsafe, shape=False)
            original.data = values
            self._register("original", original)
        else:
            self.ntensors = len(values)
            for name, value in zip(self._names(), values):
                self._register(name, Parameter(value) if isinstance(original, Parameter) else value)
        if not unsafe:
            _check_alike(self(), original, "forward", unsafe)

    def _register(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    @property
    def originals(self) -> list[Any]:
        return [getattr(self, name) for name in self._names()]

    def right_inverse(self, value: Any) -> None:
        """Set the original values so that the parametrized tensor becomes `value`, as far as the parametrizations
        have a `right_inverse`. Raises CallError if one has none."""
        with no_grad():
            found = _inverted(reversed([*self]), value, needed=True)
            for original, new in zip(self.originals, [found] if self.is_tensor else found):
                original.data = new

    def forward(self, *_arguments: Any, **_keywords: Any) -> Any:
        first, *others = self
        value = first(*self.originals)
        for parametrization in others:
            value = parametrization(value)
        return value


def _inverted(parametrizations: Any, value: Any, *, needed: bool) -> Any:
    """The values from which parametrizations, the last one first, compute `value`.

    One without a `right_inverse` takes any value as it is, unless an inverse is `needed`.
    """
    for parametrization in parametrizations:
        if not hasattr(parametrization, "right_inverse"):
            if needed:
                raise CallError(
                    f"parametrization {type(parametrization).__name__} does not implement right_inverse.",
                    hint="without it, the parametrized tensor cannot be assigned",
                )
            continue
        try:
            value = parametrization.right_inverse(value)
        except NotImplementedError:
            if needed:
                raise
    return value


def _check_alike(value: Any, like: Tensor, function: str, unsafe: bool, *, shape: bool = True) -> None:
    """Raise ArgumentError for the result of a function of a parametrization that is no tensor like the original."""
    if not isinstance(value, Tensor):
        raise ArgumentError(f"A parametrization must return a tensor. Got {type(value).__name__} from {function}.")
    if unsafe:
        return
    if value.dtype != like.dtype:
        raise ArgumentError(
            f"Registering a parametrization may not change the dtype of the tensor: {function} gives {value.dtype} for "
            f"{like.dtype}, unless the `unsafe` flag is enabled."
        )
    if shape and value.shape != like.shape:
        raise ArgumentError(
            f"Registering a parametrization may not change the shape of the tensor: {function} gives "
            f"{list(value.shape)} for {list(like.shape)}, unless the `unsafe` flag is enabled."
        )


@cache
def _parametrized_class(base: type[Module], names: tuple[str, ...]) -> type[Module]:
    """The subclass of a class of modules whose tensors with these names are computed by parametrizations."""
    return type(
        f"Parametrized{base.__name__}",
        (base,),
        {"__module__": base.__module__, "parametrized_from": base, **{name: _computed_tensor(name) for name in names}},
    )


def _computed_tensor(name: str) -> property:
    def compute(module: Any) -> Any:
        known = _computed.get()
        if known is None:
            return module.parametrizations[name]()
        key = id(module), name
        if key not in known:
            known[key] = module.parametrizations[name]()
        return known[key]

    return property(compute, lambda module, value: module.parametrizations[name].right_inverse(value))


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class of a module without its parametrizations."""
    found: type[Module] = getattr(module, "parametrized_from", type(module))
    return found


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parametrization, of the tensor of that name if one is given."""
    lists = module._modules.get("parametrizations")
    return bool(lists) if tensor_name is None else lists is not None and tensor_name in lists


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer of a module be computed by `parametrization` from its original values.

    A parametrization with a `right_inverse` gives the original values of a tensor, which then keeps its own. Raises
    ArgumentError if there is no such tensor, or it would have another shape or dtype and `unsafe` is False.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations: Any = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            made = parametrization(value)
            _check_alike(made, value, "forward", unsafe)
            _check_alike(_inverted([parametrization], made, needed=False), value, "right_inverse", unsafe)
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ArgumentError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    _choose_class(module)
    return module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor a parameter or buffer again: with the values that it has, or without
    `leave_parametrized` the original ones.

    Raises ArgumentError if it is not parametrized, or has several originals and none is to be left parametrized.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations: Any = module.parametrizations[tensor_name]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise ArgumentError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    with no_grad():
        value = getattr(module, tensor_name)
    originals = parametrizations.originals
    if parametrizations.is_tensor:
        left = originals[0]
        if leave_parametrized:
            left.data = value
    else:
        left = Parameter(value) if any(isinstance(o, Parameter) for o in originals) else value
    del module.parametrizations[tensor_name]
    _choose_class(module)
    if not is_parametrized(module):
        del module.parametrizations
    (module.register_parameter if isinstance(left, Parameter) else module.register_buffer)(tensor_name, left)
    return module


def _choose_class(module: Module) -> None:
    base: Any = type_before_parametrizations(module)
    names = tuple(module.parametrizations)
    module.__class__ = _parametrized_class(base, names) if names else base
