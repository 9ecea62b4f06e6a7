"""Calls modules as pure functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError, EvaluationError
from gradcli.nn.module import Module
from gradcli.primitives.entries.shape import stack

Tensors = Mapping[str, Any]
# Where a tensor is stored: a registry of a module, and its name there.
_Place = tuple[MutableMapping[str, Any], str]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Tensors | Sequence[Tensors],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The output of a module with its parameters and buffers replaced by the tensors of these names in a dict.

    A tensor that has several names is replaced under all of them, unless `tie_weights` is False. Raises EvaluationError
    for an unknown name, and with `strict` for a missing one.
    """
    if isinstance(parameter_and_buffer_dicts, Mapping):
        given: dict[str, Any] = dict(parameter_and_buffer_dicts)
    else:
        given = {}
        for part in parameter_and_buffer_dicts:
            twice = sorted(given.keys() & part.keys())
            if twice:
                raise ArgumentError(
                    f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            given |= part
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one class, stacked by name along a new first axis."""
    if not models:
        raise EvaluationError("stack_module_state: Expected at least one model, got 0.")
    if len({type(model) for model in models}) > 1:
        raise EvaluationError("stack_module_state: Expected all models to be of the same class.")

    def stacked(registries: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        return {
            name: stack([registry[name] for registry in registries])
            .detach()
            .requires_grad_(registries[0][name].requires_grad)
            for name in registries[0]
        }

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


@contextmanager
def _replaced(module: Module, given: Tensors, tie_weights: bool, strict: bool) -> Iterator[None]:
    places = _places(module)
    unknown = [name for name in given if name not in places]
    missing = [name for name in places if name not in given] if strict else []
    if unknown or missing:
        raise EvaluationError(
            f"functional_call: the module has no {unknown}" if unknown else f"functional_call: {missing} are not given"
        )
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise CallError(f"{name} is to be a tensor, not {type(value).__name__}")
    values = {**given, **(_tied(places, given) if tie_weights else {})}
    before = [(registry, name, registry[name]) for registry, name in map(places.__getitem__, values)]
    try:
        for place, value in values.items():
            registry, name = places[place]
            registry[name] = value
        yield
    finally:
        for registry, name, value in before:
            registry[name] = value


def _places(module: Module) -> dict[str, _Place]:
    found: dict[str, _Place] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for registry in (part._parameters, part._buffers):
            for name, value in registry.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = (registry, name)
    return found


def _tied(places: Mapping[str, _Place], given: Tensors) -> dict[str, Any]:
    """The replacements of tied tensors under their other names. Raises ArgumentError if two names of one tensor are
    given different tensors."""
    own = {id(registry[local]): name for name in given for registry, local in [places[name]]}
    found = {}
    for name, (registry, local) in places.items():
        first = own.get(id(registry[local]))
        if first is None:
            continue
        if name in given and given[name] is not given[first]:
            raise ArgumentError(f"functional_call got multiple values for keys {[name, first]}, which are tied.")
        found[name] = given[first]
    return found
