"""The base class of modules: functions of tensors that contain parameters, buffers and other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from gradcli import arrays
from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.function import Function
from gradcli.autograd.hooks import HookHandle, Hooks
from gradcli.autograd.modes import no_grad
from gradcli.autograd.node import clear_gradients
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError, EvaluationError, expect_callable
from gradcli.named_tuples import NamedTuple
from gradcli.nn.parameter import Parameter

Gradients = tuple[Any, ...]


class _Through(Function):
    """The identity of tensors; in backward their gradients pass through `show`, which may replace them."""

    @staticmethod
    def forward(ctx: Any, show: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.show = show
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.show(grads)


class BackwardCall:
    """One call of a module: keeps the gradients of its outputs until those of its inputs are known, then calls the
    hooks."""

    def __init__(self, module: Any, before: Hooks, after: Hooks) -> None:
        """`before` are called with the gradients of the outputs, `after` with those of the inputs too."""
        self._module, self._before, self._after = module, [*before.values()], [*after.values()]
        self._of_results: Gradients = ()
        self._has_arguments = False
        self._count = 0

    def arguments(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the call, with tensors that require grad passed through `_Through`."""
        self._count = len(given)
        self._has_arguments = any(isinstance(x, Tensor) and x.requires_grad for x in given)
        return tuple(_through_hooks(given, self._show_arguments)) if self._has_arguments else given

    def results(self, found: Any) -> Any:
        """The results of the call, with tensors passed through `_Through`."""
        together = found if isinstance(found, tuple) else (found,)
        passed = tuple(_through_hooks(together, self._show_results))
        return passed if isinstance(found, tuple) else passed[0]

    def _show_results(self, gradients: Gradients) -> Gradients:
        for hook in self._before:
            changed = hook(self._module, gradients)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        self._of_results = gradients
        if not self._has_arguments:
            self._call((None,) * self._count)
        return gradients

    def _show_arguments(self, gradients: Gradients) -> Gradients:
        return self._call(gradients)

    def _call(self, gradients: Gradients) -> Gradients:
        for hook in self._after:
            changed = hook(self._module, gradients, self._of_results)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        return gradients


def _through_hooks(values: Sequence[Any], show: Callable[[Gradients], Gradients]) -> list[Any]:
    """Values with their tensors passed through `_Through`; `show` gets a gradient for each value, None for
    non-tensors."""
    places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]

    def show_all(gradients: Gradients) -> Gradients:
        whole: list[Any] = [None] * len(values)
        for place, gradient in zip(places, gradients):
            whole[place] = gradient
        shown = show(tuple(whole))
        return tuple(shown[place] for place in places)

    passed = [*values]
    for place, followed in zip(places, _Through.apply(show_all, *(values[place] for place in places))):
        passed[place] = followed
    return passed


class IncompatibleKeys(NamedTuple):
    """The result of loading a state dict: the names that the state dict lacks, and those that the module does not
    have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


class Module:
    """The base class of all modules: a subclass defines `forward` and is called as a function.

    Parameters and modules are registered when they are assigned as attributes, buffers by `register_buffer`; the names
    of those inside submodules are joined by dots.
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: Hooks
    _forward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks

    def __new__(cls, *_arguments: Any, **_keywords: Any) -> Self:
        # Not in __init__, so that unpickled objects and subclasses that do not call super().__init__() have them too.
        made = super().__new__(cls)
        made.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent_buffers_set=set(),
            _forward_hooks=Hooks(),
            _forward_pre_hooks=Hooks(),
            _backward_hooks=Hooks(),
            _backward_pre_hooks=Hooks(),
        )
        return made

    def forward(self, *_arguments: Any, **_keywords: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        backward = self._backward_hooks or self._backward_pre_hooks
        if not self._forward_pre_hooks and not self._forward_hooks and not backward:
            return self.forward(*arguments, **keywords)
        hook: Any
        for hook in [*self._forward_pre_hooks.values()]:
            changed = _called(hook, self, arguments, keywords)
            if changed is None:
                continue
            if isinstance(hook, _WithKeywords):
                arguments, keywords = changed
            else:
                arguments = changed if isinstance(changed, tuple) else (changed,)
        call = BackwardCall(self, self._backward_pre_hooks, self._backward_hooks) if backward else None
        result = self.forward(*(arguments if call is None else call.arguments(arguments)), **keywords)
        for hook in [*self._forward_hooks.values()]:
            changed = _called(hook, self, arguments, keywords, result)
            result = result if changed is None else changed
        return result if call is None else call.results(result)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call `hook(module, arguments, result)` after each `forward`, behind other hooks or before them; a result other
        than None replaces the output. With `with_kwargs` the call is `hook(module, arguments, keywords, result)`."""
        return _registered(self._forward_hooks, hook, prepend, with_kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call `hook(module, arguments)` before each `forward`; a result other than None replaces the arguments. With
        `with_kwargs` the call is `hook(module, arguments, keywords)`, and its result a tuple of both."""
        return _registered(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` when backward has computed the gradients of a call's inputs and
        outputs; a result other than None replaces those of the inputs."""
        return _registered(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_output)` when backward has computed the gradients of a call's outputs; a result other
        than None replaces them."""
        return _registered(self._backward_pre_hooks, hook, prepend)

    # --- attributes

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            if name in attributes[registry]:
                return attributes[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            # An existing parameter keeps its position in the order.
            if name not in self._parameters:
                self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if name not in self._modules:
                self._forget(name)
            self._modules[name] = value
        elif name in self._parameters:
            self._parameters[name] = _checked_assignment(value, Parameter, name, "parameter", "gradcli.nn.Parameter")
        elif name in self._modules:
            self._modules[name] = _checked_assignment(value, Module, name, "child module", "gradcli.nn.Module")
        elif name in self._buffers:
            self._buffers[name] = _checked_assignment(value, Tensor, name, "buffer", "gradcli.Tensor")
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name: str) -> bool:
        """Remove the attribute with this name; returns whether there was one."""
        self._non_persistent_buffers_set.discard(name)
        registries = [self._buffers, self._modules, self._parameters, self.__dict__]
        return bool([registry.pop(name) for registry in registries if name in registry])

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter under a name, or None as a placeholder. Raises CallError for another type and
        for a name that is no string, ArgumentError for a tensor that is no leaf, and KeyError for a name that is taken,
        empty or contains a dot."""
        self._check_name(name, self._parameters, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise CallError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                "(gradcli.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ArgumentError(f"Cannot assign non-leaf Tensor to parameter '{name}'.")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not a parameter; it is in the state dict if it is `persistent`."""
        self._check_name(name, self._buffers, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise CallError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (gradcli.Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule under a name. Raises CallError for another type."""
        if module is not None and not isinstance(module, Module):
            raise CallError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, self._modules, "module")
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, name: Any, registry: Mapping[str, Any], what: str) -> None:
        if not isinstance(name, str):
            raise CallError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in registry and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # --- contents

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all modules inside it; each once, unless `remove_duplicate` is False."""
        seen: set[Module] = set() if memo is None else memo
        waiting: list[tuple[str, Module]] = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if remove_duplicate and module in seen:
                continue
            seen.add(module)
            yield name, module
            inner = [(_joined(name, n), m) for n, m in module._modules.items() if m is not None]
            waiting += reversed(inner)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module, and with `recurse` those of its submodules; each once, unless
        `remove_duplicate` is False."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers; see `named_parameters`."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named(self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        own = [(prefix, self)]
        places = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else own
        for place, module in places:
            for name, value in getattr(module, registry).items():
                if value is not None and not (remove_duplicate and id(value) in seen):
                    seen.add(id(value))
                    yield _joined(place, name), value

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name. Raises AttributeError if there is none."""
        module = self
        for name in filter(None, target.split(".")):
            if name not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = module._modules[name]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name. Raises AttributeError if there is none."""
        place, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(place), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not a Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name. Raises AttributeError if there is none."""
        place, _, name = target.rpartition(".")
        module = self.get_submodule(place)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        found: Any = module._buffers[name]
        return found  # type: ignore[no-any-return]

    # --- operations on all contents

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to 0."""
        clear_gradients(self.parameters(), set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set `training` of this module and of all its submodules."""
        if not isinstance(mode, bool):
            raise ArgumentError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call a function with each submodule, and then with this module."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def to(self, *wanted: Any, **options: Any) -> Self:
        """Convert parameters and buffers to a dtype (integers keep theirs) or move them to a device; see `Tensor.to`.

        On the device "meta" PyTorch keeps shapes without numbers, for modules whose parameters are given in each call;
        here the numbers are kept.
        """
        if "meta" in (*map(str, wanted), str(options.get("device"))):
            return self
        return self._apply(
            lambda x: x.to(*wanted, **options) if x.is_floating_point() else _on_device_of(x, wanted, options)
        )

    def double(self) -> Self:
        return self._apply(lambda x: x.double() if x.is_floating_point() else x)

    def float(self) -> Self:
        return self._apply(lambda x: x.float() if x.is_floating_point() else x)

    def half(self) -> Self:
        return self._apply(lambda x: x.half() if x.is_floating_point() else x)

    def cpu(self) -> Self:
        return self._apply(lambda x: x.cpu())

    def cuda(self, device: Any = "cuda") -> Self:
        return self._apply(lambda x: x.cuda(device))

    def type(self, dst_type: Any) -> Self:
        return self._apply(lambda x: x.to(dst_type))

    def _apply(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Replace the data of parameters, which stay the same objects, and the buffers."""
        for module in self.modules():
            module._convert(change)
        return self

    def _convert(self, change: Callable[[Tensor], Tensor]) -> None:
        """Apply a function as `_apply` does, without submodules."""
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            gradient = parameter.grad
            parameter.grad = None
            parameter.data = change(parameter.detach())
            parameter.grad = None if gradient is None else change(gradient.detach())
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else change(buffer)

    # --- state dicts

    def state_dict(
        self, *, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """The parameters and persistent buffers by name, sharing memory; detached, unless `keep_vars` is true."""
        found = {} if destination is None else destination
        for name, value in self._saved(prefix):
            found[name] = value if keep_vars else value.detach()
        return found

    def _saved(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        for name, value in self._parameters.items():
            if value is not None:
                yield prefix + name, value
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                yield prefix + name, value
        for name, module in self._modules.items():
            if module is not None:
                yield from module._saved(f"{prefix}{name}.")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors or arrays (of any library) in `state_dict` to parameters and buffers; with `assign`, use the
        tensors themselves.

        Raises EvaluationError where shapes differ, and with `strict` where names differ.
        """
        if not isinstance(state_dict, Mapping):
            raise CallError(f"Expected state_dict to be dict-like, got {type(state_dict).__name__}.")
        own = dict(self._saved(""))
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        given = [name for name in own if name in state_dict]
        faults = []
        if strict and missing:
            faults.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if strict and unexpected:
            faults.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        for name in given:
            there, here = arrays.shape(state_dict[name]), own[name].shape
            if there != here:
                faults.append(
                    f"size mismatch for {name}: copying a param with shape {list(there)} from checkpoint, "
                    f"the shape in current model is {list(here)}."
                )
        if faults:
            text = "\n\t".join(faults)
            raise EvaluationError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{text}")
        for name in given:
            if assign:
                self._assign(name, state_dict[name])
            else:
                _take_numbers(own[name], state_dict[name])
        return IncompatibleKeys(missing, unexpected)

    def _assign(self, target: str, value: Any) -> None:
        place, _, name = target.rpartition(".")
        module = self.get_submodule(place)
        if name in module._buffers:
            module._buffers[name] = value
        else:
            old = module._parameters[name]
            module._parameters[name] = value if isinstance(value, Parameter) else Parameter(value, old.requires_grad)

    # --- repr

    def extra_repr(self) -> str:
        """The text inside the parentheses of the module's repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._modules.items()]
        if lines and extra:
            lines = [*extra.split("\n"), *lines]
        inside = "".join(f"\n  {line}" for line in lines) + "\n" if lines else extra
        return f"{self._get_name()}({inside})"

    def _get_name(self) -> str:
        return type(self).__name__


class _WithKeywords(NamedTuple):
    """A hook that takes the keywords of a call too."""

    function: Callable[..., Any]


def _called(hook: Any, module: Module, arguments: Any, keywords: Any, *result: Any) -> Any:
    """Call a hook, with the keywords of the call if it takes them, and return its result."""
    if isinstance(hook, _WithKeywords):
        return hook.function(module, arguments, keywords, *result)
    return hook(module, arguments, *result)


def _registered(hooks: Hooks, hook: Callable[..., Any], prepend: bool, with_kwargs: bool = False) -> HookHandle:
    expect_callable(hook, "a hook is a function")
    kept: Any = _WithKeywords(hook) if with_kwargs else hook
    return hooks.register(kept, prepend)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _checked_assignment(value: Any, kind: type, name: str, what: str, wanted: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise CallError(f"cannot assign '{type(value).__name__}' as {what} '{name}' ({wanted} or None expected)")
    return value


def _on_device_of(x: Tensor, wanted: tuple[Any, ...], options: Mapping[str, Any]) -> Tensor:
    """A tensor that is not floating, on the device that others are moved to, in its own dtype."""
    probe: Any = tensor(0.0, dtype="float64").to(*wanted, **options)
    moved: Tensor = x.to(device=probe.device)
    return moved


def _take_numbers(target: Tensor, value: Any) -> None:
    given = value.detach() if isinstance(value, Tensor) else arrays.like_library_of(arrays.on_host(value), target.inner)
    with no_grad():
        target.copy_(given)
