"""Derivatives of functions of arrays, with the names and behaviour of HIPS autograd.

The gradient by a complex argument z = a + i*b is dL/da - i*dL/db, as there and in JAX; PyTorch's is its conjugate.

The differentiated function receives tensors. Results are numbers and arrays in the containers of the arguments, or
tensors with a graph where an argument is a tensor or the function reads outer tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions import composable_transforms, pytrees, unconjugated
from gradcli.calculus.functions.function_calls import Callback
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.calculus.functions.pytrees import mapped
from gradcli.errors import CallError, DifferentiationError, NotRealError, expect, expect_function
from gradcli.primitives.bind import primal_and_tangents
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import multiply, ones_like
from gradcli.primitives.entries.elementwise.complex_numbers import real
from gradcli.primitives.entries.linear_algebra.matrices import tensordot
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.operators import operand

Argnum = int | tuple[int, ...] | list[int]


def grad(function: Callback, argnum: Argnum = 0) -> Callback:
    """Return a function that computes the gradient of `function` by the argument, or arguments, `argnum`.

    The value must have one element; otherwise the call raises DifferentiationError.
    """
    return _named("grad", function, _of(unconjugated.grad, _scalar(function), argnum))


def value_and_grad(function: Callback, argnum: Argnum = 0) -> Callback:
    """Return a function that computes the value of `function` and its gradient. See `grad`."""

    def both(of: Callback, argnums: Any) -> Callback:
        found = unconjugated.grad_and_value(of, argnums)
        return lambda *arguments, **keywords: found(*arguments, **keywords)[::-1]

    return _named("value_and_grad", function, _of(both, _scalar(function), argnum))


def grad_and_aux(function: Callback, argnum: Argnum = 0) -> Callback:
    """Return a function that computes the gradient of the first result of `function`, and returns the second
    unchanged."""
    expect_function(function)

    def split(*arguments: Any, **keywords: Any) -> Any:
        value, aux = function(*arguments, **keywords)
        return _one_element(value), aux

    return _named("grad_and_aux", function, _of(functools.partial(unconjugated.grad, has_aux=True), split, argnum))


def holomorphic_grad(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes the complex derivative of a holomorphic `function`, whose value has one element.

    That it is holomorphic is not examined.
    """
    expect_function(function)
    return _named("holomorphic_grad", function, grad(lambda *a, **k: real(as_tensor(function(*a, **k))), argnum))


def grad_named(function: Callback, argname: str) -> Callback:
    """Return the gradient function by the argument named `argname`. See `grad`."""
    names = [*inspect.signature(function).parameters]
    if argname not in names:
        raise CallError(f"the function has no argument {argname!r}")
    return grad(function, names.index(argname))


def multigrad_dict(function: Callback) -> Callback:
    """Return a function that computes the gradients by all arguments, as a dict by argument name."""
    bound = inspect.signature(function).bind

    def gradients(*arguments: Any, **keywords: Any) -> Any:
        return grad(lambda given: _called_with(function, given))(bound(*arguments, **keywords).arguments)

    return _named("multigrad_dict", function, gradients)


def elementwise_grad(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes the gradient of the sum of `function`: for an elementwise function, its
    derivative at each element."""

    def gradient(*arguments: Any, **keywords: Any) -> Any:
        pull, value = make_vjp(function, argnum)(*arguments, **keywords)
        return pull(mapped(ones_like, value))

    return _named("elementwise_grad", function, gradient)


def deriv(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes the derivative of `function` by a scalar argument, for a value of any shape."""

    def derivative(*arguments: Any, **keywords: Any) -> Any:
        return make_jvp(function, argnum)(*arguments, **keywords)(mapped(ones_like, _floats(arguments[argnum])))[1]

    return _named("deriv", function, derivative)


def jacobian(function: Callback, argnum: Argnum = 0) -> Callback:
    """Return a function that computes the Jacobian of `function` by an argument, of shape value.shape +
    argument.shape."""
    return _named("jacobian", function, _of(composable_transforms.jacrev, _of_tensors(function), argnum))


def hessian(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes second derivatives, of shape value.shape + 2*argument.shape."""
    return _named("hessian", function, _of(_hessian, _of_tensors(function), argnum))


def _hessian(function: Callback, argnum: Any) -> Callback:
    # Reverse over reverse: user-defined functions need only a vjp.
    return composable_transforms.jacrev(composable_transforms.jacrev(function, argnum), argnum)


def make_vjp(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes `(vjp, value)`: `vjp(g)` is the gradient of the inner product of the value with
    `g`."""

    def made(*arguments: Any, **keywords: Any) -> Any:
        of_one, x = _by_one(function, argnum, arguments, keywords)
        value, pull = unconjugated.vjp(of_one, x)
        return lambda g: _like(arguments, pull(g)[0]), _like(arguments, value)

    return _named("make_vjp", function, made)


def make_jvp(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes `jvp`: `jvp(v)` is the value and its derivative along `v`."""

    def made(*arguments: Any, **keywords: Any) -> Any:
        of_one, x = _by_one(function, argnum, arguments, keywords)
        return lambda v: _like(arguments, composable_transforms.jvp(of_one, (x,), (mapped(_floats, v),)))

    return _named("make_jvp", function, made)


make_jvp_reversemode = make_jvp


def make_hvp(function: Callback, argnum: int = 0) -> Callback:
    """Return a function that computes `(hvp, gradient)`: `hvp(v)` is the Hessian times `v`."""
    return make_vjp(grad(function, argnum), argnum)


def make_ggnvp(
    function: Callback, loss: Callback = lambda y: multiply(0.5, sum_(multiply(y, y))), f_argnum: int = 0
) -> Callback:
    """Return a function that computes `ggnvp`: `ggnvp(v)` is the Gauss-Newton matrix of `loss(function(x))` times
    `v`."""

    def made(*arguments: Any, **keywords: Any) -> Any:
        of_one, x = _by_one(function, f_argnum, arguments, keywords)
        value, pull = composable_transforms.vjp(of_one, x)

        def product(v: Any) -> Any:
            along = composable_transforms.jvp(of_one, (x,), (mapped(_floats, v),))[1]
            curved = composable_transforms.jvp(composable_transforms.grad(_scalar(loss)), (value,), (along,))[1]
            return _like(arguments, pull(curved)[0])

        return product

    return _named("make_ggnvp", function, made)


def hessian_tensor_product(function: Callback, argnum: int = 0) -> Callback:
    """Return a function of the arguments, followed by a tensor, that computes the product of the Hessian with that
    tensor."""

    def product(*arguments: Any, **keywords: Any) -> Any:
        *given, direction = arguments
        return make_hvp(function, argnum)(*given, **keywords)[0](direction)

    return _named("hessian_tensor_product", function, product)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(function: Callback, argnum: int = 0) -> Callback:
    """Return a function of the arguments, followed by a tensor, that computes the product of that tensor with the
    Jacobian."""

    def weighted(*arguments: Any, **keywords: Any) -> Any:
        *given, weights = arguments
        return tensordot(weights, function(*given, **keywords), len(arrays.shape(operand(weights))))

    return _named("tensor_jacobian_product", function, jacobian(weighted, argnum))


vector_jacobian_product = tensor_jacobian_product


# --- arrays in, arrays out


def _of(transform: Callable[[Callback, Any], Callback], function: Callback, argnum: Argnum) -> Callback:
    """Adapt a transform of functions of tensors to functions of arrays."""
    expect(argnum, (int, tuple, list), "argnum is the number of an argument, or a tuple of numbers")
    places = (argnum,) if isinstance(argnum, int) else tuple(argnum)
    derivative = transform(function, argnum if isinstance(argnum, int) else places)

    def of_arrays(*arguments: Any, **keywords: Any) -> Any:
        return _like(arguments, derivative(*_with_floats(arguments, places), **keywords))

    return of_arrays


def _by_one(
    function: Callback, argnum: int, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[Callback, Any]:
    """Return `function` as a function of one argument, and that argument."""
    given, of = _with_floats(arguments, (argnum,)), _of_tensors(function)
    return lambda x: of(*(x if i == argnum else a for i, a in enumerate(given)), **keywords), given[argnum]


def _with_floats(arguments: tuple[Any, ...], places: tuple[int, ...]) -> list[Any]:
    given = list(arguments)
    for place in places:
        if not -len(given) <= place < len(given):
            raise CallError(f"argnum names argument {place}, and {len(given)} are given")
        given[place] = mapped(_floats, given[place])
    return given


def _floats(x: Any) -> Any:
    """Convert integers to floats, so that they can be differentiated by."""
    if isinstance(x, Tensor) or arrays.is_inexact(operand(x)):
        return x
    return float(x) if type(x) is int else arrays.asarray(x, "float64")


def _of_tensors(function: Callback) -> Callback:
    """Wrap `function` so that results that depend on no tensor are tensors too."""
    expect_function(function)
    return lambda *arguments, **keywords: mapped(as_tensor, function(*arguments, **keywords))


def _scalar(function: Callback) -> Callback:
    expect_function(function)
    return lambda *arguments, **keywords: _one_element(function(*arguments, **keywords))


def _one_element(value: Any) -> Tensor:
    if isinstance(value, (tuple, list, dict)):
        raise DifferentiationError(f"a gradient is that of a scalar, and the function gives a {type(value).__name__}")
    found = as_tensor(value)
    if found.is_complex():
        raise NotRealError(
            "a gradient is that of a real number, and the function gives a complex one",
            hint="holomorphic_grad differentiates what is holomorphic, and grad its real or imaginary part",
        )
    if found.dtype == "bool":
        raise NotRealError("a gradient is that of a number, and the function gives a truth value")
    if found.size != 1:
        raise DifferentiationError(
            f"a gradient is that of a scalar, and the function gives a tensor of shape {[*found.shape]}",
            hint="jacobian differentiates what has a shape, and elementwise_grad the sum of it",
        )
    scalar: Tensor = reshape(found, ()) if found.shape else found
    return scalar


def _like(arguments: tuple[Any, ...], found: Any) -> Any:
    """Convert results to writable arrays where no argument is a tensor."""
    if any(isinstance(leaf, Tensor) for leaf in pytrees.leaves(arguments)):
        return found
    return mapped(as_array, found)


def as_array(x: Any) -> Any:
    """Return the numbers of a tensor as a writable array or a number.

    A tensor that takes part in another differentiation is returned as it is.
    """
    if not isinstance(x, Tensor) or x.requires_grad or x.dual or len(primal_and_tangents(x.inner)) > 1:
        return x
    if isinstance(x.inner, float) or arrays.backend_of(type(x.inner)) == "numpy":
        return arrays.numpy_namespace().array(x.inner)[()]
    return x.detach().inner if arrays.is_array(x.inner) else x


def _called_with(function: Callback, given: Mapping[str, Any]) -> Any:
    """Call `function` with arguments by name, including those of its `*args` and `**kwargs`."""
    bound = inspect.BoundArguments(inspect.signature(function), dict(given))
    return function(*bound.args, **bound.kwargs)


def _named(operator: str, function: Callback, made: Callback) -> Callback:
    functools.update_wrapper(made, function)
    made.__name__ = f"{operator}_of_{getattr(function, '__name__', 'function')}"
    return made
