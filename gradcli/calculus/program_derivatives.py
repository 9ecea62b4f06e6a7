"""Differentiation within a program: `diff`, `jacobian`, `hessian`, `jvp`, `vjp`, `detach`, and their helpers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from gradcli import arrays, limits
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors, beginning
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.errors import DifferentiationError, ShapeError
from gradcli.kinds.jets import Jet
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import Kind, concrete, constant
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import identity, multiply
from gradcli.primitives.entries.reductions import sum_

# Called with a differentiated value and its derivatives of order 1, 2, ….
Observer = Callable[[Sequence[Any]], None]
observer: ContextVar[Observer | None] = ContextVar("gradcli_inside_observer", default=None)


def tracked(value: Any) -> Any:
    """Return `value` as a tensor that can be differentiated by.

    A tensor within a graph gets a node of its own: differentiating by a name must not include paths that do not pass
    through the name.
    """
    if isinstance(value, Tensor) and value.requires_grad:
        return identity(value)
    data = value.inner if isinstance(value, Tensor) else value
    tensor = Tensor(data if arrays.is_inexact(data) else cast(data, arrays.default_dtype()))
    return tensor.requires_grad_()


def detach(value: Any) -> Any:
    """Return `value` without its history and its derivatives."""
    number = constant(value)
    if isinstance(number, Kind):
        # The recorded constant must be a variable different from the differentiated number.
        number = identity(number)
    return Tensor(number) if isinstance(value, Tensor) else number


def diff(y: Any, x: Any, n: Any = 1) -> Any:
    """Return the nth derivative of the scalar `y` by `x`; 0 where `y` does not depend on `x`.

    At a kink, derivatives of order 2 and higher are nan; the order counts derivatives that `y` is computed from.
    """
    order = integer(n, "the order of 'diff'")
    if order < 0:
        raise DifferentiationError("the order of 'diff' must not be negative")
    orders = [y]
    kinked, earlier = _has_kinks(y, x), _is_of_derivative_at_kink(y, x)
    for n in range(order):
        if arrays.shape(y):
            raise DifferentiationError(
                f"'diff' needs a scalar, and this has shape {list(arrays.shape(y))}",
                hint="jacobian(y, x) for the derivative of each element, or diff(sum(y), x) for that of the sum",
            )
        found = _gradient(y, x)
        y = _or_zeros(found, y, x)
        if earlier or (kinked and n):
            y = multiply(y, math.nan)
        orders.append(y)
        if found is None and not arrays.shape(y):
            # All higher derivatives are zero too.
            break
    return _report(orders, kinked or earlier)


def _gradient(y: Any, x: Any) -> Any:
    """The derivative of the scalar `y`, with a graph: of a real one the gradient, also by a complex `x`."""
    if arrays.is_complex(y):
        return _of_complex(y, x, gradients)
    return gradients(y, (x,), create_graph=True)[0]


def _of_complex(y: Any, x: Any, differentiate: Any) -> Any:
    # Loaded on demand: few programs have complex numbers.
    from gradcli.calculus.complex_derivatives import derivative_within_graph

    return derivative_within_graph(y, x, lambda part, by: differentiate(part, by, create_graph=True))


def _has_kinks(y: Any, x: Any) -> bool:
    """Return whether an operation on a path from `x` to `y` has a kink here, so that reverse mode of order 2 follows a
    convention.

    One-sided Taylor series give the right derivatives, and are not affected.
    """
    if not isinstance(y, Tensor) or isinstance(y.inner, Jet):
        return False
    return not all(node.is_smooth() for node in ancestors(y, after=beginning((x,))))


# Derivatives taken through a kink, and their nodes. Their own derivatives are of order 2 or higher.
_at_kinks: WeakSet[Any] = WeakSet()


def _is_of_derivative_at_kink(y: Any, x: Any) -> bool:
    """Return whether `y` is computed from a derivative taken through a kink."""
    if not _at_kinks or not isinstance(y, Tensor):
        return False
    return y in _at_kinks or any(node in _at_kinks for node in ancestors(y, after=beginning((x,))))


def depends(y: Any, x: Any) -> bool:
    """Return whether `y` is computed from `x`."""
    seed = arrays.ones_like(concrete(y)) if arrays.is_complex(y) else None
    return gradients(y, (x,), seed, create_graph=True)[0] is not None


def jacobian(y: Any, x: Any) -> Any:
    """Return the derivatives of each element of `y` by each element of `x`, of shape y.shape + x.shape."""
    found = _of_complex(y, x, jacobians) if arrays.is_complex(y) else jacobians(y, (x,), create_graph=True)[0]
    found = _or_zeros(found, y, x)
    kinked, earlier = _has_kinks(y, x), _is_of_derivative_at_kink(y, x)
    return _report([y, multiply(found, math.nan) if earlier else found], kinked or earlier)


def hessian(y: Any, x: Any) -> Any:
    """Return the second derivatives of the scalar `y`, of shape x.shape + x.shape."""
    if arrays.shape(y):
        raise DifferentiationError(
            f"'hessian' needs a scalar, and this has shape {list(arrays.shape(y))}", hint="hessian(sum(y), x)"
        )
    gradient = _or_zeros(_gradient(y, x), y, x)
    if arrays.is_complex(gradient) and not arrays.is_complex(y):
        raise DifferentiationError(
            "a real number has no second derivative by a complex one that is a single number",
            hint="differentiate by its real and imaginary parts, a and b of complex(a, b)",
        )
    by_element = _of_complex(gradient, x, jacobians) if arrays.is_complex(gradient) else None
    second = jacobians(gradient, (x,), create_graph=True)[0] if by_element is None else by_element
    second = _or_zeros(second, gradient, x)
    kinked = _has_kinks(y, x) or _is_of_derivative_at_kink(y, x)
    return _report([y, gradient, multiply(second, math.nan) if kinked else second], kinked)


def jvp(y: Any, x: Any, v: Any) -> Any:
    """Return the Jacobian of `y` by `x` times `v`, the derivative of `y` along `v`. `v` is a number or has the shape of
    `x`."""
    _fits(v, x, "jvp", "x")
    # Transpose twice: the cotangent of x is linear in that of y, and differentiating it along v by the latter gives the
    # jvp.
    of_y = tracked(arrays.in_default_namespace(arrays.ones_like(arrays.zeros(arrays.shape(y), arrays.dtype_name(x)))))
    along = gradients(sum_(multiply(_pulled_back(y, x, of_y), v)), (of_y,), create_graph=True)[0]
    return _report([y, arrays.zeros_like(of_y.inner) if along is None else along])


def vjp(y: Any, x: Any, v: Any) -> Any:
    """Return `v` times the Jacobian of `y` by `x`: the gradient of sum(v*y). `v` is a number or has the shape of
    `y`."""
    _fits(v, y, "vjp", "y")
    return _report([y, _pulled_back(y, x, v)])


def _pulled_back(y: Any, x: Any, v: Any) -> Any:
    weighted = sum_(multiply(y, v))
    return _or_zeros(gradients(weighted, (x,), create_graph=True)[0], weighted, x)


def _fits(v: Any, other: Any, function: str, name: str) -> None:
    if arrays.shape(v) not in ((), arrays.shape(other)):
        raise ShapeError(
            f"the third argument of '{function}' is a number or has the shape of {name}, {list(arrays.shape(other))}, "
            f"and this has shape {list(arrays.shape(v))}"
        )


def _report(derivatives: Sequence[Any], at_kink: bool = False) -> Any:
    """Report derivatives to the observer, and return the last of them; with `at_kink`, register it as taken through a
    kink."""
    last = derivatives[-1]
    if at_kink and isinstance(last, Tensor):
        _at_kinks.update(known for known in (last, last.grad_fn) if known is not None)
    observe = observer.get()
    if observe is not None:
        observe(derivatives)
    return last


def _or_zeros(found: Any, y: Any, x: Any) -> Any:
    """Return `found`, or zeros where `y` does not depend on `x`.

    Raises DifferentiationError where `y` was computed before `x` got its name: then it depends on the value of `x`, but
    not through the name.
    """
    if found is not None:
        return found
    if isinstance(y, Tensor) and _depends_past_name(y, x):
        raise DifferentiationError(
            "the first argument was made before the second got this name",
            hint="compute it from the name that it is differentiated by, inside the function or after the assignment",
        )
    return arrays.in_default_namespace(arrays.zeros(arrays.shape(y) + arrays.shape(x), arrays.dtype_name(x)))


def _depends_past_name(y: Tensor, x: Tensor) -> bool:
    """Return whether `y` depends on what the tracked tensor `x` was made from, by a path that passes through no
    name."""
    sources: set[Any] = set()
    node = x.grad_fn
    while isinstance(node, Node) and not _is_no_name(node):
        sources.update(node.targets)
        node = next(iter(node.targets), None)
    if not sources:
        return False
    limits.charge_steps(len(sources))
    between = ancestors(y, after=beginning(sources), past=_is_no_name)
    reached = {y.grad_fn}.union(*(node.targets for node in between if _is_no_name(node)))
    return not reached.isdisjoint(sources)


def _is_no_name(node: Node) -> bool:
    return not isinstance(node, PrimitiveNode) or node.primitive is not identity
