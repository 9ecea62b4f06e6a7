"""Custom derivatives of functions of arrays, with the names and behaviour of `autograd.extend`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from gradcli.autograd.modes import grad_enabled, no_grad
from gradcli.calculus.functions.custom_rules import Rule, transpose_linear
from gradcli.calculus.functions.differential_operators import as_array
from gradcli.calculus.functions.pytrees import leaves, mapped, unflatten
from gradcli.errors import CallError, MissingRuleError, expect_function
from gradcli.numpy.dispatch import has_tensors

__all__ = [
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
]

# Pull maps the cotangent of the value to those of the arguments `argnums`, push their tangents to that of the value.
_Pull = Callable[[Sequence[int], Any, Sequence[Any], dict[str, Any], Any], Sequence[Any]]
_Push = Callable[[Sequence[int], Sequence[Any], Any, Sequence[Any], dict[str, Any]], Any]


class primitive:
    """Decorator that records a function of arrays as a single operation where it is called with tensors.

    The function gets NumPy arrays. Its derivative is set by `defvjp` or `defjvp`, and may be any code of arrays; where
    the derivative is itself differentiated, that code gets tensors.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        expect_function(function)
        self.fun = function
        self.pull: _Pull | None = None
        self.push: _Push | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if not has_tensors(arguments):
            return self.fun(*arguments, **keywords)

        def run(*given: Any) -> Any:
            return self.fun(*(mapped(as_array, x) for x in given), **keywords)

        def pull(given: tuple[Any, ...], value: Any, g: Any) -> Sequence[Any]:
            return self._pulled(given, keywords, value, g)

        return Rule(run, pull, arguments).applied()

    def _pulled(self, given: tuple[Any, ...], keywords: dict[str, Any], value: Any, g: Any) -> Sequence[Any]:
        places = [i for i, x in enumerate(given) if has_tensors(x)]
        if not grad_enabled.get():
            given, value, g = (mapped(as_array, x) for x in (given, value, g))
        found: list[Any] = [None] * len(given)
        if self.pull is not None:
            slopes = self.pull(places, value, given, keywords, g)
        elif self.push is not None:
            push, chosen = self.push, [given[i] for i in places]
            slopes = transpose_linear(lambda *tangents: push(places, tangents, value, given, keywords), chosen, g)
        else:
            raise MissingRuleError(f"{self.__name__} has no derivative", hint="defvjp gives it one")  # type: ignore[attr-defined]
        for place, slope in zip(places, slopes):
            found[place] = slope
        return found

    def __repr__(self) -> str:
        return f"<primitive {getattr(self.fun, '__name__', self.fun)}>"


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function of arrays without a derivative; called with tensors, it gets their arrays."""

    @functools.wraps(function)
    def of_numbers(*arguments: Any, **keywords: Any) -> Any:
        with no_grad():
            bare = [x.detach() if has_tensors(x) else x for x in leaves((arguments, keywords))]
            positional, named = unflatten((arguments, keywords), map(as_array, bare))
            return function(*positional, **named)

    return of_numbers


def defvjp(fun: primitive, *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None) -> None:
    """Set the vjp of `fun` for each argument, or for those in `argnums`.

    `vjpmaker(ans, *arguments, **keywords)(g)` is the cotangent of the argument for the cotangent g of the value `ans`;
    None stands for an argument that the value does not depend on.
    """
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers))

    def pull(places: Sequence[int], ans: Any, given: Sequence[Any], keywords: dict[str, Any], g: Any) -> Sequence[Any]:
        rules = [_rule(fun, makers, place, "vjp") for place in places]
        return [None if rule is None else rule(ans, *given, **keywords)(g) for rule in rules]

    _expect_primitive(fun).pull = pull


def defvjp_argnum(fun: primitive, vjpmaker: Callable[..., Any]) -> None:
    """Set the vjp of `fun` for all arguments, `vjpmaker(argnum, ans, arguments, keywords)(g)`."""

    def pull(places: Sequence[int], ans: Any, given: Sequence[Any], keywords: dict[str, Any], g: Any) -> Sequence[Any]:
        return [vjpmaker(place, ans, given, keywords)(g) for place in places]

    _expect_primitive(fun).pull = pull


def defvjp_argnums(fun: primitive, vjpmaker: Callable[..., Any]) -> None:
    """Set the vjp of `fun` for all arguments at once, `vjpmaker(argnums, ans, arguments, keywords)(g)`."""

    def pull(places: Sequence[int], ans: Any, given: Sequence[Any], keywords: dict[str, Any], g: Any) -> Sequence[Any]:
        found: Sequence[Any] = [*vjpmaker(tuple(places), ans, given, keywords)(g)]
        return found

    _expect_primitive(fun).pull = pull


def defjvp(fun: primitive, *jvpfuns: Callable[..., Any] | str | None, argnums: Iterable[int] | None = None) -> None:
    """Set the jvp of `fun` for each argument, or for those in `argnums`.

    `jvpfun(g, ans, *arguments, **keywords)` is the tangent of the value `ans` for the tangent g of the argument. "same"
    stands for an argument in which `fun` is linear, None for one that the value does not depend on. Without a `defvjp`,
    gradients are computed as the transpose of the jvp.
    """
    rules = dict(zip(count() if argnums is None else argnums, jvpfuns))

    def push(
        places: Sequence[int], tangents: Sequence[Any], ans: Any, given: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        parts = []
        for place, tangent in zip(places, tangents):
            rule = _rule(fun, rules, place, "jvp")
            if rule == "same":
                # Calls the function itself with tensors, so that its own derivatives are used.
                parts.append(fun.fun(*given[:place], tangent, *given[place + 1 :], **keywords))
            elif rule is not None:
                parts.append(rule(tangent, ans, *given, **keywords))
        return _sum(parts, ans)

    _expect_primitive(fun).push = push


def defjvp_argnum(fun: primitive, jvpmaker: Callable[..., Any]) -> None:
    """Set the jvp of `fun` for all arguments, `jvpmaker(argnum, g, ans, arguments, keywords)`."""

    def push(
        places: Sequence[int], tangents: Sequence[Any], ans: Any, given: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        return _sum([jvpmaker(place, g, ans, given, keywords) for place, g in zip(places, tangents)], ans)

    _expect_primitive(fun).push = push


def defjvp_argnums(fun: primitive, jvpmaker: Callable[..., Any]) -> None:
    """Set the jvp of `fun` for all arguments at once, `jvpmaker(argnums, gs, ans, arguments, keywords)`."""

    def push(
        places: Sequence[int], tangents: Sequence[Any], ans: Any, given: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        return jvpmaker(tuple(places), tuple(tangents), ans, given, keywords)

    _expect_primitive(fun).push = push


def _sum(parts: Sequence[Any], ans: Any) -> Any:
    if not parts:
        return mapped(lambda y: 0.0 * y, ans)
    return functools.reduce(lambda one, other: mapped(lambda a, b: a + b, one, other), parts)


def _rule(fun: primitive, rules: dict[int, Any], place: int, kind: str) -> Any:
    if place not in rules:
        name = getattr(fun, "__name__", "the primitive")
        raise MissingRuleError(f"{name} has no {kind} by argument {place}", hint=f"def{kind} gives it one")
    return rules[place]


def _expect_primitive(fun: Any) -> primitive:
    if not isinstance(fun, primitive):
        raise CallError("a derivative is given to what `primitive` made", hint="decorate the function with @primitive")
    return fun
