"""The base classes of distributions: shapes, samples, validation and common methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from gradcli import arrays
from gradcli.arrays.shapes import Shape, Size, broadcast
from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.errors import ArgumentError
from gradcli.primitives import table
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import broadcast_to

LOG_2_PI = math.log(2 * math.pi)


def constrained(**by_name: Constraint) -> Mapping[str, Constraint]:
    """The constraints on parameters by their names, as a class has them in `arg_constraints`."""
    return MappingProxyType(by_name)


class Distribution:
    """The base class of all distributions. `batch_shape` is the shape of independent distributions, `event_shape` that
    of one sample; samples have the shape `sample_shape` + `batch_shape` + `event_shape`."""

    has_rsample: ClassVar[bool] = False
    # The names of the parameters in the order of the repr, and their constraints.
    parameter_names: ClassVar[tuple[str, ...]] = ()
    arg_constraints: ClassVar[Mapping[str, Constraint]] = constrained()
    # The constraint on values.
    support: ClassVar[Constraint | None] = None
    _validate_args = True

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self) and not constraints.is_dependent(constraint):
                    self._check(name, getattr(self, name), constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether parameters and values are checked where `validate_args` is not given."""
        Distribution._validate_args = value

    def _check(self, name: str, value: Tensor, constraint: Constraint) -> None:
        # Tracers (of a batch or a recording) have no values to check.
        if isinstance(value.inner, Kind):
            return
        if not constraint.check(arrays.to_numpy(value.detach().inner)).all():
            raise ArgumentError(
                f"Expected parameter {name} of distribution {type(self).__name__} to satisfy the constraint {constraint}, "
                f"but found invalid values:\n{value}"
            )

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples, detached from the graph."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples that are differentiable by the parameters (reparameterised)."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def sample_n(self, n: int) -> Any:
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density or probability at a value. Raises ValueError for a value outside the support."""
        if self._validate_args:
            self._validate_sample(as_tensor(value))
        return self._log_prob(value)

    def _log_prob(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError for a value outside the support."""
        support = self.support
        if support is None or isinstance(value.inner, Kind):
            return
        if not arrays.numpy_namespace().all(support.check(arrays.to_numpy(value.detach().inner))):
            raise ArgumentError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support ({support}) of "
                f"the distribution {self!r}, but found invalid values:\n{value}"
            )

    def cdf(self, value: Any) -> Any:
        """The probability of values up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Any) -> Any:
        """The inverse of `cdf`: the quantile of a probability."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Any:
        """The entropy, the expectation of -log_prob."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Any:
        return self.entropy().exp()

    @property
    def mean(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def expand(self, batch_shape: Any) -> Self:
        """The same distribution with its parameters broadcast to a batch shape."""
        raise NotImplementedError(f"{type(self).__name__} has no expand")

    def _with_parameters(self, batch_shape: Any, **parameters: Any) -> Self:
        """The same distribution with other parameters, which are not checked."""
        made = type(self).__new__(type(self))
        vars(made).update(vars(self), **parameters)
        made.batch_shape = Size(batch_shape)
        return made

    def _extended_shape(self, sample_shape: Any = ()) -> Shape:
        """The shape of samples for a `sample_shape`."""
        sizes = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*map(int, sizes), *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        parts = []
        for name in self.parameter_names:
            if name in vars(self):
                value = getattr(self, name)
                parts.append(f"{name}: {value.item() if value.numel() == 1 else value.shape}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Univariate(Distribution):
    """A distribution of single numbers, whose parameters are broadcast. Its density and distribution functions are
    those of the expression language, if it has a distribution with this name."""

    # Each subclass has those in `parameter_names`.
    loc: Any
    scale: Any
    low: Any
    high: Any
    rate: Any
    df: Any
    concentration: Any
    concentration0: Any
    concentration1: Any
    total_count: Any

    def __init__(self, *parameters: Any, validate_args: bool | None = None) -> None:
        for name, value in zip(self.parameter_names, broadcast_all(*parameters)):
            setattr(self, name, value)
        super().__init__(getattr(self, self.parameter_names[0]).shape, (), validate_args)

    @property
    def _parameters(self) -> list[Any]:
        return [getattr(self, name) for name in self.parameter_names]

    def expand(self, batch_shape: Any) -> Self:
        shape = tuple(batch_shape)
        return self._with_parameters(shape, **{n: broadcast_to(getattr(self, n), shape) for n in self.parameter_names})

    def _log_prob(self, value: Any) -> Any:
        return self._function("log_prob", value)

    def cdf(self, value: Any) -> Any:
        return self._function("cdf", value)

    def icdf(self, value: Any) -> Any:
        return self._function("icdf", value)

    def _function(self, name: str, value: Any) -> Any:
        found = table.find(name, f"torch.distributions.{type(self).__name__}")
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} has no {name}")
        return found(as_tensor(value), *self._parameters)


def as_tensor(value: Any) -> Any:
    """A tensor unchanged; numbers as a floating-point tensor."""
    if isinstance(value, Tensor):
        return value
    made = tensor(value)
    return made if made.is_floating_point() else made.to(arrays.default_dtype())


def broadcast_all(*values: Any) -> list[Any]:
    """Numbers and tensors broadcast to tensors of one shape."""
    made = [*map(as_tensor, values)]
    shape = broadcast([x.shape for x in made])
    return [x if x.shape == shape else broadcast_to(x, shape) for x in made]


def sum_rightmost(x: Any, count: int) -> Any:
    """The sum over the last `count` axes."""
    return x.sum(tuple(range(-count, 0))) if count else x


def exactly_one(**given: Any) -> str:
    """The name of the one argument that is not None. Raises ValueError unless there is exactly one."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        listed = " or ".join(f"`{name}`" for name in given)
        raise ArgumentError(f"Either {listed} must be specified, but not both.")
    return names[0]


def dtype_of(*values: Any) -> str:
    """The floating-point dtype in which samples for these parameters are drawn."""
    return next((str(x.dtype) for x in values if x.is_floating_point()), arrays.default_dtype())
