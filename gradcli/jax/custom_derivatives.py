"""Functions with user-defined derivatives: `jax.custom_vjp` and `jax.custom_jvp`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions.custom_rules import Rule, transpose_linear
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.calculus.functions.pytrees import leaves, mapped
from gradcli.errors import CallError, MissingRuleError, expect_function
from gradcli.jax.arrays import to_tensor


class _Custom:
    """The base class: `nondiff_argnums` are the arguments that are passed to the rules unchanged."""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        expect_function(fun)
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        functools.update_wrapper(self, fun)

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        given = list(_positional(self.fun, arguments, keywords))
        places = [i for i in range(len(given)) if i not in self.nondiff_argnums]
        fixed = [given[i] for i in self.nondiff_argnums]

        def of_chosen(function: Callable[..., Any]) -> Callable[..., Any]:
            def called(*chosen: Any) -> Any:
                for place, x in zip(places, chosen):
                    given[place] = x
                return function(*given)

            return called

        return self._rule(of_chosen, fixed, [mapped(to_tensor, given[i]) for i in places])

    def _rule(self, of_chosen: Callable[..., Any], fixed: Sequence[Any], chosen: Sequence[Any]) -> Any:
        raise NotImplementedError


class custom_vjp(_Custom):
    """A decorator for functions whose cotangents are computed by the user's rule; see `defvjp`."""

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the rule: `fwd(*arguments)` returns the value and residuals; `bwd(residuals, cotangent)` returns a
        tuple of the arguments' cotangents."""
        self.fwd, self.bwd = fwd, bwd

    def _rule(self, of_chosen: Callable[..., Any], fixed: Sequence[Any], chosen: Sequence[Any]) -> Any:
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise MissingRuleError(f"no VJP is defined for {self.fun}", hint="defvjp defines it")
        kept: list[Any] = []
        # `fwd` may call this function itself, with arguments that are not differentiated.
        differentiated = grad_enabled.get() and any(isinstance(x, Tensor) and x.requires_grad for x in leaves(chosen))

        def run(*given: Any) -> Any:
            if not differentiated:
                return mapped(as_tensor, of_chosen(self.fun)(*given))
            value, residuals = of_chosen(fwd)(*given)
            kept[:] = [residuals]
            return mapped(as_tensor, value)

        def pull(given: Any, _value: Any, g: Any) -> Sequence[Any]:
            # If the derivative is differentiated in turn, the residuals must be computed as functions of the arguments.
            residuals = of_chosen(fwd)(*given)[1] if grad_enabled.get() else kept[0]
            found = bwd(*fixed, residuals, g)
            if not isinstance(found, (tuple, list)) or len(found) != len(given):
                raise CallError(f"the rule of a custom_vjp gives a tuple of {len(given)}, one for each argument")
            return found

        return Rule(run, pull, chosen).applied(own_rows=True)


class custom_jvp(_Custom):
    """A decorator for functions whose tangents are computed by the user's rule; see `defjvp`."""

    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Define the rule: `jvp(primals, tangents)` returns the value and its tangent."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define a rule for each argument: `jvp(tangent, value, *arguments)` returns its part of the value's
        tangent."""

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            value = self(*primals)
            parts = [rule(t, value, *primals) for rule, t in zip(jvps, tangents) if rule is not None]
            zero = mapped(lambda y: 0.0 * y, value)
            return value, functools.reduce(lambda one, other: mapped(lambda a, b: a + b, one, other), parts, zero)

        self.jvp = jvp

    def _rule(self, of_chosen: Callable[..., Any], fixed: Sequence[Any], chosen: Sequence[Any]) -> Any:
        rule = self.jvp
        if rule is None:
            raise MissingRuleError(f"no JVP is defined for {self.fun}", hint="defjvp defines it")

        def run(*given: Any) -> Any:
            return mapped(as_tensor, of_chosen(self.fun)(*given))

        def pull(given: Any, _value: Any, g: Any) -> Sequence[Any]:
            return transpose_linear(lambda *tangents: rule(*fixed, tuple(given), tangents)[1], given, g)

        return Rule(run, pull, chosen).applied(own_rows=True)


def _positional(fun: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, as the rules take them."""
    if not keywords:
        return arguments
    bound = inspect.signature(fun).bind(*arguments, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise CallError("a function with a rule of its own takes no arguments that have to be named")
    return bound.args
