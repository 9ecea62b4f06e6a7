"""Pruning of networks: chosen elements of a parameter are held at 0, by a mask, as in `torch.nn.utils.prune`.

The parameter `weight` becomes `weight_orig`, the mask is the buffer `weight_mask`, and their product is computed before
each call. A method of pruning is a subclass of `BasePruningMethod`, whose `compute_mask` chooses the elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from gradcli.autograd.creation.creation_functions import ones_like, zeros_like
from gradcli.autograd.creation.random_tensors import rand, rand_like
from gradcli.autograd.modes import no_grad
from gradcli.errors import ArgumentError, CallError, ShapeError, expect
from gradcli.nn.module import Module
from gradcli.nn.utils.vectors import parameters_to_vector
from gradcli.primitives.axes import normalize_axis
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.indexing import axis_key
from gradcli.primitives.entries.sampled_data.order_statistics import topk
from gradcli.primitives.entries.statistics import norm


class BasePruningMethod:
    """A hook that multiplies a parameter by its mask before each call of a module.

    A subclass defines `compute_mask` and `PRUNING_TYPE`, which says what it sees of a parameter that is pruned already:
    "unstructured" the elements that are left, "structured" the slices along its `dim` in which an element is left, and
    "global" all elements.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The new mask, of 0 and 1, for the importance scores `t` of the elements and the mask so far."""
        raise NotImplementedError

    def __call__(self, module: Module, _inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Any:
        """The parameter of the module times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *arguments: Any, importance_scores: Any = None, **options: Any
    ) -> BasePruningMethod:
        """Prune the parameter `name` of a module; the arguments are those of the method. Returns the hook of the module:
        the method, or a `PruningContainer` of all methods that the parameter was pruned by.

        Raises ArgumentError for scores of another shape than the parameter's.
        """
        before, weight = _hook_of(module, name), getattr(module, name)
        scores = weight if importance_scores is None else importance_scores
        _check_shape(scores, weight, f"parameter {name} of {module}")
        method = cls(*arguments, **options)
        method._tensor_name = name
        hook = method if before is None else PruningContainer(*_methods_of(before), method)
        with no_grad():
            mask = ones_like(weight.detach()) if before is None else getattr(module, f"{name}_mask")
            mask = hook.compute_mask(scores.detach(), mask).to(weight.dtype)
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", weight)
        else:
            _remove_hook(module, before)
        module.register_buffer(f"{name}_mask", mask)
        hook(module, ())
        module.register_forward_pre_hook(hook)
        return hook

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor with the elements that this method chooses replaced by 0. Raises ArgumentError for scores of another
        shape than the tensor's."""
        scores = t if importance_scores is None else importance_scores
        _check_shape(scores, t, "tensor t")
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor a parameter again, with zeros where it is pruned. The hook stays: see `remove`."""
        name = self._tensor_name
        # The parameter stays the same object, so that optimizers go on with it.
        parameter = getattr(module, f"{name}_orig")
        with no_grad():
            values = self.apply_mask(module)
        for part in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, part)
        parameter.data = values
        module.register_parameter(name, parameter)


class PruningContainer(BasePruningMethod):
    """The methods that a parameter was pruned by, in order; the last one computes the mask from the mask before it."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method for the same parameter. Raises CallError for something else, and ArgumentError for a method for
        another parameter."""
        if not isinstance(method, BasePruningMethod):
            raise CallError(f"{type(method)} is not a BasePruningMethod subclass")
        if not self._methods:
            self._tensor_name = method._tensor_name
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._methods += (method,)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._methods[-1]
        visible = _visible_elements(method, default_mask)
        mask = default_mask.clone()
        mask[visible] = method.compute_mask(t[visible], default_mask[visible]).to(mask.dtype)
        return mask

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._methods[index]


def _visible_elements(method: Any, mask: Any) -> Any:
    """The index of the elements that a method sees of a parameter with this mask."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "structured":
        dim = normalize_axis(method.dim, mask.ndim)
        return axis_key(dim, mask.sum(_axes_except(dim, mask.ndim)) != 0)
    if kind == "global":
        return ...
    raise ArgumentError(f"Unrecognized PRUNING_TYPE {kind}")


class Identity(BasePruningMethod):
    """Prunes nothing, but has the parameter and the mask of a pruned tensor."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _OfAmount(BasePruningMethod):
    """A method with an amount: a number of elements or slices, or as a float the fraction of those that it sees."""

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, (int, float)):
            raise CallError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (isinstance(amount, float) and amount > 1):
            raise ArgumentError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
            )
        self.amount = amount

    def _number_of(self, size: int) -> int:
        """How many of `size` elements or slices to prune."""
        count = self.amount if isinstance(self.amount, int) else round(self.amount * size)
        if count > size:
            raise ArgumentError(f"amount={count} should be smaller than the number of parameters to prune={size}")
        return count


class _Unstructured(_OfAmount):
    """Prunes the elements of least importance."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        kept = default_mask.clone().reshape(-1)
        kept[self._chosen(t.reshape(-1), self._number_of(t.numel()))] = 0
        return kept.reshape(default_mask.shape)

    def _chosen(self, scores: Any, count: int) -> Any:
        """The positions of `count` of the elements."""
        raise NotImplementedError


class L1Unstructured(_Unstructured):
    """Prunes the elements with the least absolute values."""

    def _chosen(self, scores: Any, count: int) -> Any:
        return topk(absolute(scores), count, largest=False).indices


class RandomUnstructured(_Unstructured):
    """Prunes random elements."""

    def _chosen(self, scores: Any, count: int) -> Any:
        return topk(rand_like(scores), count).indices


class _Structured(_OfAmount):
    """Prunes whole slices along the axis `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.ndim <= 1:
            raise ArgumentError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        dim = normalize_axis(self.dim, t.ndim)
        size = t.shape[dim]
        count = self._number_of(size)
        if not count:
            return default_mask
        mask = zeros_like(default_mask)
        mask[axis_key(dim, topk(self._importance(t, dim), size - count).indices)] = 1
        return mask * default_mask

    def _importance(self, t: Any, dim: int) -> Any:
        """A number for each slice along an axis, the largest for those to keep."""
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes random slices along the axis `dim`."""

    def _importance(self, t: Any, dim: int) -> Any:
        return rand(t.shape[dim])


class LnStructured(_Structured):
    """Prunes the slices along the axis `dim` with the least norms; `n` is the order of the norm."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _importance(self, t: Any, dim: int) -> Any:
        slices = t.movedim(dim, 0).reshape(t.shape[dim], -1)
        return norm(slices, float(self.n), 1)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0. Raises ShapeError for a mask of another shape than the parameter's."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if tuple(default_mask.shape) != tuple(self.mask.shape):
            raise ShapeError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def _check_shape(scores: Any, weight: Any, what: str) -> None:
    if tuple(scores.shape) != tuple(weight.shape):
        raise ArgumentError(
            f"importance_scores should have the same shape as {what}, got {list(scores.shape)} vs {list(weight.shape)}"
        )


def _axes_except(dim: int, ndim: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(ndim) if axis != dim)


def _hook_of(module: Module, name: str) -> BasePruningMethod | None:
    hooks = (hook for hook in module._forward_pre_hooks.values() if isinstance(hook, BasePruningMethod))
    return next((hook for hook in hooks if hook._tensor_name == name), None)


def _methods_of(hook: BasePruningMethod) -> Iterable[BasePruningMethod]:
    return hook if isinstance(hook, PruningContainer) else (hook,)


def _remove_hook(module: Module, hook: BasePruningMethod) -> None:
    hooks: Any = module._forward_pre_hooks
    del hooks[next(number for number, known in hooks.items() if known is hook)]


def identity(module: Module, name: str) -> Module:
    """Give the parameter `name` a mask of ones."""
    Identity.apply(module, name)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
    """Prune the elements of the parameter `name` whose absolute values, or those of `importance_scores`, are least.

    `amount` is the number of elements, or as a float the fraction of those that are not pruned yet. Raises ArgumentError
    for an amount that there is not, and for scores of another shape.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of the parameter `name`; see `l1_unstructured`."""
    RandomUnstructured.apply(module, name, amount)
    return module


def ln_structured(module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Prune the slices of the parameter `name` along the axis `dim` whose norms of order `n` are least.

    `amount` is the number of slices, or as a float the fraction of those in which an element is left. Raises
    ArgumentError for an amount that there is not, and for a parameter with one axis.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random slices of the parameter `name` along the axis `dim`; see `ln_structured`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Prune the parameter `name` where a mask is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Any] | None = None,
    **options: Any,
) -> None:
    """Prune parameters, pairs of a module and a name, as if they were one tensor; `options` are those of the method.

    Raises CallError for a method that is not unstructured.
    """
    expect(parameters, Iterable, "global_unstructured(): parameters is not an Iterable")
    pairs, scores = [*parameters], importance_scores or {}
    method = pruning_method(**options)
    if method.PRUNING_TYPE != "unstructured":
        raise CallError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "parameters"
    with no_grad():
        weights = [getattr(module, name).detach() for module, name in pairs]
        masks = [getattr(module, f"{name}_mask", ones_like(w)) for (module, name), w in zip(pairs, weights)]
        given = [scores.get(pair, weight).detach() for pair, weight in zip(pairs, weights)]
        whole = PruningContainer(method).compute_mask(parameters_to_vector(given), parameters_to_vector(masks))
    parts = whole.split([weight.numel() for weight in weights])
    for (module, name), weight, mask in zip(pairs, weights, parts):
        custom_from_mask(module, name, mask.reshape(weight.shape))


def remove(module: Module, name: str) -> Module:
    """Make the pruned tensor a parameter again, with zeros where it is pruned. Raises ArgumentError if it is not
    pruned."""
    hook = _hook_of(module, name)
    if hook is None:
        raise ArgumentError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    hook.remove(module)
    _remove_hook(module, hook)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module or of a module in it is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, part in module.named_modules()
        for hook in part._forward_pre_hooks.values()
    )
