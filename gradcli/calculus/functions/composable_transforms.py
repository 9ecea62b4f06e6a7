"""Composable transforms of Python functions: derivatives in forward and reverse mode, and evaluation for each row.

Arguments and results are tensors, or tuples, lists and dicts of them. A transformed function can be differentiated
again and mapped over rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.batches_and_series import coefficient_of, depends_only_on_series, series_of
from gradcli.calculus.derivatives import jacobians, zeros
from gradcli.calculus.functions import pytrees
from gradcli.calculus.functions.function_calls import Callback, FunctionCall, called, pulled, tensors_in, with_aux
from gradcli.calculus.functions.mapping import as_tensor, vmap
from gradcli.calculus.rows import unit_tensors
from gradcli.errors import CallError, DifferentiationError, ShapeError, expect, expect_function
from gradcli.primitives.bind import primal_and_tangents
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import zeros_like

Argnums = int | tuple[int, ...]

# Taylor series do not nest: within one, directional derivatives are computed from reverse mode.
_within_series: ContextVar[bool] = ContextVar("gradcli_within_series", default=False)


def grad(function: Callback, argnums: Argnums = 0, has_aux: bool = False) -> Callback:
    """Return a function that computes the gradient of a scalar `function` by the argument, or the arguments, `argnums`.

    The gradient has the structure of the argument, with zeros where the value does not depend on it; for several
    arguments it is a tuple. With `has_aux`, `function` returns a scalar and an auxiliary result, which is returned
    beside the gradient. Raises DifferentiationError for a non-scalar value.
    """
    found = grad_and_value(function, argnums, has_aux)

    @functools.wraps(function)
    def gradient(*arguments: Any, **keywords: Any) -> Any:
        slopes, value = found(*arguments, **keywords)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


def grad_and_value(function: Callback, argnums: Argnums = 0, has_aux: bool = False) -> Callback:
    """Return a function that computes `(gradient, value)`, or with `has_aux` `(gradient, (value, aux))`. See `grad`."""
    expect_function(function)

    @functools.wraps(function)
    def both(*arguments: Any, **keywords: Any) -> Any:
        chosen, of_chosen = _chosen(function, arguments, keywords, argnums)
        call = called(of_chosen, chosen, has_aux)
        if not isinstance(call.value, Tensor) or call.value.shape:
            raise DifferentiationError(
                f"a gradient is that of a scalar, and the function gives {_described(call.value)}",
                hint="jacrev and jacfwd differentiate what has a shape",
            )
        # The graph is not needed again; releasing it early frees memory.
        found = pulled(call, [call.value], None, create_graph=call.recorded, retain_graph=call.recorded)
        slopes = pytrees.unflatten(chosen, found)
        value = call.released(call.value)
        return _one_or_all(slopes, argnums), ((value, call.released(call.aux)) if has_aux else value)

    return both


def vjp(function: Callback, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of `function`, and the vjp function from a cotangent of the value to a tuple of those of the
    `primals`.

    The cotangent has the structure and shapes of the value; for a tuple it may be given as several arguments. With
    `has_aux` the second result of `function` comes third. The vjp function raises ShapeError for a cotangent of another
    shape.
    """
    expect_function(function)
    call = called(function, primals, has_aux)

    def pull(*cotangents: Any) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds = [_fitting(as_tensor(c), y) for y, c in zip(tensors_in(call.value), pytrees.aligned(call.value, given))]
        again = call.recorded or any(map(_is_inside, seeds)) or any(s.requires_grad for s in seeds)
        found = pulled(call, tensors_in(call.value), seeds, create_graph=again and grad_enabled.get())
        filled: tuple[Any, ...] = pytrees.unflatten(primals, found)
        return filled

    value = call.released(call.value)
    return (value, pull, call.released(call.aux)) if has_aux else (value, pull)


def jvp(
    function: Callback, primals: Sequence[Any], tangents: Sequence[Any], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of `function` at the tuple `primals`, and its derivative along the tuple `tangents`, of the same
    structure.

    With `strict`, a value that does not depend on the primals raises DifferentiationError. With `has_aux` the second
    result of `function` comes third. Raises ShapeError for tangents of other shapes than the primals.
    """
    expect_function(function)
    for given, what in ((primals, "primals"), (tangents, "tangents")):
        expect(given, (tuple, list), f"the {what} are a tuple, of one value for each argument")
    points = [as_tensor(x) for x in pytrees.leaves(primals)]
    directions = [_fitting(as_tensor(v), x) for x, v in zip(points, pytrees.aligned(primals, tangents))]
    found = None
    if not _within_series.get() and not any(map(_is_inside, (*points, *directions))):
        found = _along_by_series(function, primals, points, directions, has_aux, strict)
    if found is None:
        call = called(function, pytrees.unflatten(primals, points), has_aux)
        along = pytrees.unflatten(call.value, _pushed(call, strict)(directions))
        found = call.released(call.value), along, call.released(call.aux)
    return found if has_aux else found[:2]


def linearize(function: Callback, *primals: Any) -> tuple[Any, Callback]:
    """Return the value of `function` at the `primals`, and the function from tangents to the derivative along them.

    `function` is called once, for any number of tangents.
    """
    expect_function(function)
    call = called(function, primals, False)
    push = _pushed(call, False)

    def along(*tangents: Any) -> Any:
        given = pytrees.aligned(primals, tangents)
        return pytrees.unflatten(call.value, push([_fitting(as_tensor(v), x) for x, v in zip(call.inputs, given)]))

    return call.released(call.value), along


def jacrev(function: Callback, argnums: Argnums = 0, *, has_aux: bool = False) -> Callback:
    """Return a function that computes the Jacobian of `function` by the arguments `argnums`, in reverse mode.

    For a single tensor by a single tensor it has shape value.shape + argument.shape; otherwise it has the structure of
    the value, whose leaves have the structure of the arguments.
    """
    expect_function(function)

    @functools.wraps(function)
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        chosen, of_chosen = _chosen(function, arguments, keywords, argnums)
        _check_real("jacrev", chosen, "input")
        call = called(of_chosen, chosen, has_aux)
        _check_real("jacrev", call.value, "output")
        blocks = [
            _one_or_all(pytrees.unflatten(chosen, _jacobian(call, value)), argnums) for value in tensors_in(call.value)
        ]
        found = pytrees.unflatten(call.value, blocks)
        return (found, call.released(call.aux)) if has_aux else found

    return jacobian


def jacfwd(function: Callback, argnums: Argnums = 0, has_aux: bool = False) -> Callback:
    """Return a function that computes the Jacobian of `function` in forward mode.

    The result is that of `jacrev`; it is faster where the arguments have fewer elements than the value.
    """
    expect_function(function)

    @functools.wraps(function)
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        chosen, of_chosen = _chosen(function, arguments, keywords, argnums)
        _check_real("jacfwd", chosen, "input")
        points = [as_tensor(x) for x in pytrees.leaves(chosen)]

        def along(place: int, direction: Tensor) -> Any:
            directions = [direction if i == place else zeros_like(x) for i, x in enumerate(points)]
            primals, tangents = pytrees.unflatten(chosen, points), pytrees.unflatten(chosen, directions)
            _, *found = jvp(of_chosen, primals, tangents, has_aux=has_aux)
            return tuple(found)

        columns, structure, aux = [], None, None
        for place, point in enumerate(points):
            single = Tensor(arrays.like_library_of(unit_tensors(point, 0, point.size), point.inner))
            slopes, *further = vmap(functools.partial(along, place), out_dims=-1)(single)
            structure, aux = slopes, further
            columns.append([reshape(c, (*c.shape[:-1], *point.shape)) for c in pytrees.leaves(slopes)])
        blocks = [_one_or_all(pytrees.unflatten(chosen, row), argnums) for row in zip(*columns)]
        found = pytrees.unflatten(structure, blocks)
        return (found, pytrees.mapped(lambda a: a[..., 0], aux[0])) if has_aux and aux else found

    return jacobian


def hessian(function: Callback, argnums: Argnums = 0) -> Callback:
    """Return a function that computes second derivatives, of shape value.shape + 2*argument.shape, by forward over
    reverse mode."""
    return jacfwd(jacrev(function, argnums), argnums)


def _check_real(operator: str, values: Any, what: str) -> None:
    """Raise DifferentiationError for complex values, by which one Jacobian does not say all."""
    for place, value in enumerate(pytrees.leaves(values)):
        if (isinstance(value, Tensor) or arrays.is_array(value)) and arrays.is_complex(value):
            raise DifferentiationError(
                f"{operator}: Expected all {what}s to be real but received complex tensor at flattened {what} idx: "
                f"{place}"
            )


# --- reverse mode


def _jacobian(call: FunctionCall, value: Tensor) -> list[Any]:
    found = jacobians(value, call.inputs, create_graph=call.recorded)
    return [zeros(value.shape + x.shape, x) if f is None else f for f, x in zip(found, call.inputs)]


# --- directional derivatives


def _along_by_series(
    function: Callback,
    primals: Any,
    points: Sequence[Tensor],
    directions: Sequence[Tensor],
    has_aux: bool,
    strict: bool,
) -> tuple[Any, Any, Any] | None:
    """Return the value, its directional derivative and the auxiliary result, by Taylor series.

    None where an operation has no series, or the value depends on other tensors too.
    """
    series = [series_of(x, v) for x, v in zip(points, directions)]
    try:
        with _series_inside():
            returned = function(*pytrees.unflatten(primals, series))
    except NotImplementedError:
        return None
    value, aux = with_aux(returned) if has_aux else (returned, None)
    if not depends_only_on_series(tensors_in(value)):
        return None
    if strict:
        _check_depends(map(_is_inside, tensors_in(value)))
    first, second = (pytrees.mapped(functools.partial(coefficient_of, number=k), value) for k in (0, 1))
    return first, second, pytrees.mapped(_plain, aux)


@contextmanager
def _series_inside() -> Iterator[None]:
    token = _within_series.set(True)
    try:
        yield
    finally:
        _within_series.reset(token)


def _pushed(call: FunctionCall, strict: bool) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return the jvp function, by transposing twice: the gradient is linear in its cotangent, and is differentiated by
    it."""
    values = tensors_in(call.value)
    if strict:
        _check_depends(value.requires_grad for value in values)
    seeds = [Tensor(zeros_like(y.inner)).requires_grad_() for y in values]
    slopes = pulled(call, values, seeds, create_graph=True)
    turned = FunctionCall(slopes, seeds, None, call.recorded)

    def push(directions: Sequence[Tensor]) -> list[Tensor]:
        again = call.recorded or any(v.requires_grad for v in directions)
        return pulled(turned, slopes, directions, create_graph=again and grad_enabled.get())

    return push


def _check_depends(depends: Iterator[bool]) -> None:
    if not all(depends):
        raise DifferentiationError("the value does not depend on the primals, and strict says that it must")


# --- arguments and results


def _chosen(
    function: Callback, arguments: Sequence[Any], keywords: Mapping[str, Any], argnums: Argnums
) -> tuple[tuple[Any, ...], Callback]:
    """Return the arguments to differentiate by, and `function` as a function of these alone."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    if not places:
        raise CallError("argnums names no argument to differentiate by")
    for place in places:
        expect(place, int, "argnums is the number of an argument, or a tuple of numbers")
        if not -len(arguments) <= place < len(arguments):
            raise CallError(f"argnums names argument {place}, and {len(arguments)} are given")

    def of_chosen(*given: Any) -> Any:
        all_of_them = [*arguments]
        for place, value in zip(places, given):
            all_of_them[place] = value
        return function(*all_of_them, **keywords)

    return tuple(arguments[place] for place in places), of_chosen


def _one_or_all(found: tuple[Any, ...], argnums: Argnums) -> Any:
    return found if isinstance(argnums, tuple) else found[0]


def _fitting(tangent: Tensor, x: Tensor) -> Tensor:
    if tangent.shape != x.shape:
        raise ShapeError(f"a derivative of shape {list(tangent.shape)} does not fit a value of shape {list(x.shape)}")
    return tangent


def _plain(leaf: Any) -> Any:
    return coefficient_of(leaf, 0) if isinstance(leaf, Tensor) else leaf


def _is_inside(x: Tensor) -> bool:
    """Return whether a tensor carries a tangent or other components beside its value."""
    return len(primal_and_tangents(x.inner)) > 1


def _described(value: Any) -> str:
    return f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
