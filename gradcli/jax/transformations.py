"""Function transformations with JAX's names and arguments, implemented by those of `gradcli.func`.

The gradient by a complex argument is the conjugate of PyTorch's, as in JAX.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from gradcli.calculus.functions import composable_transforms, mapping, unconjugated
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.calculus.functions.pytrees import mapped
from gradcli.errors import expect_function
from gradcli.jax.arrays import to_tensor, with_tensors
from gradcli.utils.checkpoint import checkpoint as _checkpoint

Argnums = int | tuple[int, ...]
Function = Callable[..., Any]


def grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of a scalar `fun` by the argument or arguments `argnums`."""
    return with_tensors(unconjugated.grad(_of(fun), _places(argnums), has_aux))


def value_and_grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`."""
    found = unconjugated.grad_and_value(_of(fun), _places(argnums), has_aux)

    @functools.wraps(fun)
    def both(*arguments: Any, **keywords: Any) -> Any:
        gradient, value = found(*arguments, **keywords)
        return value, gradient

    return with_tensors(both)


def jacrev(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the Jacobian of `fun`, by reverse mode."""
    return with_tensors(composable_transforms.jacrev(_of(fun), _places(argnums), has_aux=has_aux))


def jacfwd(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the Jacobian of `fun`, by forward mode."""
    return with_tensors(composable_transforms.jacfwd(_of(fun), _places(argnums), has_aux))


jacobian = jacrev


def hessian(fun: Function, argnums: Argnums = 0) -> Function:
    """A function that returns the second derivatives of `fun`."""
    return with_tensors(composable_transforms.hessian(_of(fun), _places(argnums)))


def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun`, and the function that maps a cotangent of the value to those of the `primals`."""
    value, pull, *aux = unconjugated.vjp(_of(fun), *mapped(to_tensor, primals), has_aux=has_aux)
    return value, lambda cotangent: pull(mapped(as_tensor, cotangent)), *aux


def jvp(fun: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at the tuple `primals`, and its tangent for the tuple `tangents`."""
    return composable_transforms.jvp(
        _of(fun), mapped(to_tensor, tuple(primals)), mapped(to_tensor, tuple(tangents)), has_aux=has_aux
    )


def linearize(fun: Function, *primals: Any) -> Any:
    """The value of `fun`, and the linear function that maps tangents to the tangent of the value."""
    return composable_transforms.linearize(_of(fun), *mapped(to_tensor, primals))


def vmap(fun: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """`fun` vectorised over slices of its arguments."""
    return with_tensors(mapping.vmap(_of(fun), in_axes, out_axes))


def jit(fun: Function | None = None, **_options: Any) -> Any:
    """`fun` with tensors as arguments and results, also as a decorator. Nothing is compiled: the function runs in each
    call, prints each time, may branch on values, and arguments need not be static."""
    return with_tensors if fun is None else with_tensors(fun)


def checkpoint(fun: Function, **_options: Any) -> Function:
    """`fun` without saved intermediate values, which are recomputed for the derivative."""
    expect_function(fun)

    @functools.wraps(fun)
    def again(*arguments: Any, **keywords: Any) -> Any:
        return _checkpoint(fun, *arguments, use_reentrant=False, **keywords)

    return again


remat = checkpoint


@contextlib.contextmanager
def disable_jit(_disable: bool = True) -> Iterator[None]:
    """Does nothing, since functions are never compiled."""
    yield


def eval_shape(fun: Function, *arguments: Any, **keywords: Any) -> Any:
    """The result of `fun`, which has the shape and dtype in question; it is evaluated for that."""
    return with_tensors(fun)(*arguments, **keywords)


def device_put(x: Any, _device: Any = None) -> Any:
    """Numbers and arrays converted to tensors."""
    return mapped(as_tensor, x)


def device_get(x: Any) -> Any:
    """Tensors converted to NumPy arrays."""
    return mapped(lambda leaf: as_tensor(leaf).numpy(), x)


def block_until_ready(x: Any) -> Any:
    """`x` unchanged; it is computed already."""
    return x


def _of(fun: Function) -> Function:
    expect_function(fun)
    return with_tensors(fun)


def _places(argnums: Any) -> Argnums:
    return tuple(argnums) if isinstance(argnums, list) else argnums
