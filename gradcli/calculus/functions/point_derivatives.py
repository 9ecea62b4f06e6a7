"""Derivatives of Python functions at a point, with the names of `torch.autograd.functional`.

Inputs and results are a tensor or a tuple of tensors. They are computed by `composable_transforms`, and have
a graph only with `create_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from gradcli.autograd.modes import enable_grad, no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions import composable_transforms, pytrees
from gradcli.calculus.functions.function_calls import Callback, called, gradients, tensors_in
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import CallError, DifferentiationError, as_bool, expect_function
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import ones_like

_OF_INPUTS = "the input to the user-provided function is"
_STRATEGIES = ("forward-mode", "reverse-mode")
_STRATEGY = (
    'Expected {} to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
    '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
)


def vjp(
    function: Callback, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the value of `function`, and the product of `v`, in the structure of the value, with its Jacobian.

    `v` may be left out where the value has one element. Raises DifferentiationError where `v` does not fit, and with
    `strict` where the value does not depend on every input.
    """
    points, single = _points(function, inputs)
    if as_bool(strict, "strict"):
        check_dependence(function, points, create_graph)
    with _graph(create_graph):
        value, pull = composable_transforms.vjp(function, *points)
        along = _along(v, value, "the user-provided function returns")
        found = pull(along if isinstance(value, (tuple, list)) else along[0])
    return value, found[0] if single else found


def jvp(
    function: Callback, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the value of `function`, and the product of its Jacobian with `v`, in the structure of the inputs.

    `v` may be left out where the input has one element. Raises what `vjp` raises.
    """
    points, _ = _points(function, inputs)
    if as_bool(strict, "strict"):
        check_dependence(function, points, create_graph)
    with _graph(create_graph):
        value, along = composable_transforms.jvp(function, points, _along(v, inputs, _OF_INPUTS))
    return value, along


def vhp(
    function: Callback, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the value of `function`, which has one element, and the product of `v` with its Hessian.

    `v` has the structure of the inputs. Raises what `jvp` raises, and DifferentiationError where the value has several
    elements.
    """
    points, single = _points(function, inputs)
    scalar = _scalar(function, "vhp")
    if as_bool(strict, "strict"):
        check_dependence(scalar, points, create_graph, second=True)
    with _graph(create_graph):
        _, pull, value = composable_transforms.vjp(
            composable_transforms.grad_and_value(scalar, _argnums(points, single)), *points, has_aux=True
        )
        along = _along(v, inputs, _OF_INPUTS)
        found = pull(along[0] if single else along)
    return value, found[0] if single else found


def hvp(
    function: Callback, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return the value of `function`, which has one element, and the product of its Hessian with `v`, by forward over
    reverse mode. Raises what `vhp` raises."""
    points, single = _points(function, inputs)
    scalar = _scalar(function, "hvp")
    if as_bool(strict, "strict"):
        check_dependence(scalar, points, create_graph, second=True)
    with _graph(create_graph):
        along = _along(v, inputs, _OF_INPUTS)
        _, found, value = composable_transforms.jvp(
            composable_transforms.grad_and_value(scalar, _argnums(points, single)), points, along, has_aux=True
        )
    return value, found


def jacobian(
    function: Callback,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `function` at `inputs`, a tensor or a tuple of tensors.

    For one input and one result it is a Tensor of shape result.shape + input.shape; for a tuple of either, a tuple of
    such tensors; for tuples of both, a tuple of tuples, one for each result. It is zero where a result does not depend
    on an input, which raises DifferentiationError with `strict`. All rows are computed at once, so `vectorize` has no
    effect. Raises CallError for a `strategy` other than "reverse-mode" and "forward-mode".
    """
    points, single = _points(function, inputs)
    mode = _mode(strategy, "strategy")
    if as_bool(strict, "strict"):
        check_dependence(function, points, create_graph, each=True)
    with _graph(create_graph):
        return mode(function, _argnums(points, single))(*points)


def hessian(
    function: Callback,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "forward-mode",
) -> Any:
    """Return the second derivatives of `function`, whose value has one element, at `inputs`, a tensor or a tuple of
    tensors.

    For one input it is a Tensor of shape x.shape + x.shape; for a tuple, a tuple of tuples, with shape inputs[i].shape
    + inputs[j].shape at [i][j]. Raises DifferentiationError where the value has several elements; see `jacobian` for
    the rest.
    """
    points, single = _points(function, inputs)
    scalar = _scalar(function, "hessian")
    outer = _mode(outer_jacobian_strategy, "outer_jacobian_strategy")
    if as_bool(strict, "strict"):
        check_dependence(scalar, points, create_graph, second=True)
    argnums = _argnums(points, single)
    with _graph(create_graph):
        return outer(composable_transforms.jacrev(scalar, argnums), argnums)(*points)


def _points(function: Callback, inputs: Any) -> tuple[tuple[Tensor, ...], bool]:
    """Return the inputs as a tuple of tensors, and whether a single input was given."""
    expect_function(function)
    single = not isinstance(inputs, (list, tuple))
    points = tuple(as_tensor(x) for x in ((inputs,) if single else inputs))
    if not points:
        raise CallError("there is no input to differentiate by")
    return points, single


def _argnums(points: Sequence[Tensor], single: bool) -> int | tuple[int, ...]:
    return 0 if single else tuple(range(len(points)))


def _graph(create_graph: bool) -> Any:
    return enable_grad() if as_bool(create_graph, "create_graph") else no_grad()


def _mode(strategy: str, name: str) -> Any:
    if strategy not in _STRATEGIES:
        raise CallError(_STRATEGY.format(name))
    return composable_transforms.jacfwd if strategy == "forward-mode" else composable_transforms.jacrev


def _along(v: Any, like: Any, what: str) -> tuple[Any, ...]:
    """Return `v` as a tuple with the structure of `like`; by default a tensor of ones, for a single tensor with one
    element."""
    several = isinstance(like, (list, tuple))
    wanted = [as_tensor(x) for x in (like if several else (like,))]
    if v is None:
        if len(wanted) != 1 or wanted[0].size != 1:
            raise DifferentiationError(
                f"The vector v can only be None if {what} a single Tensor with a single element."
            )
        return (ones_like(wanted[0]),)
    given = [as_tensor(x) for x in (v if isinstance(v, (list, tuple)) else (v,))]
    if len(given) != len(wanted):
        if several:
            raise DifferentiationError(f"v is a tuple of invalid length: should be {len(wanted)} but got {len(given)}.")
        raise DifferentiationError("The given v should contain a single Tensor.")
    for i, (one, other) in enumerate(zip(given, wanted)):
        if one.shape != other.shape:
            entry = f"Entry {i} in " if several else ""
            raise DifferentiationError(
                f"{entry}v has invalid size: should be {list(other.shape)} but got {list(one.shape)}."
            )
    return tuple(given)


def _scalar(function: Callback, name: str) -> Callback:
    """Wrap `function`, whose value must have one element, to return a scalar."""

    def scalar(*given: Tensor) -> Tensor:
        found = pytrees.leaves(function(*given))
        if len(found) != 1 or not isinstance(found[0], Tensor):
            raise CallError(f"The function given to {name} should return a single Tensor")
        value = found[0]
        if value.size != 1:
            raise DifferentiationError(
                f"The Tensor returned by the function given to {name} should contain a single element, and has shape "
                f"{list(value.shape)}"
            )
        return reshape(value, ()) if value.shape else value

    return scalar


# --- the checks of `strict`

_NO_GRADIENTS = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
_INDEPENDENT = "{} of the user-provided function is independent of input {}. This is not allowed in strict mode{}."
_LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)


def check_dependence(
    function: Callback, points: Sequence[Tensor], create_graph: bool, *, second: bool = False, each: bool = False
) -> None:
    """Raise DifferentiationError where the value of `function` does not depend on every point.

    With `each`, every result must depend on every point; with `second`, the gradient must too; with `create_graph`, the
    highest of these derivatives must not be constant.
    """
    call = called(function, points, False)
    values = tensors_in(call.value)
    for i, value in enumerate(values):
        if not value.requires_grad:
            raise DifferentiationError(_NO_GRADIENTS.format(i))
    slopes: list[Tensor] = []
    for i, group in enumerate([[value] for value in values] if each else [values]):
        seeds = [ones_like(value).detach() for value in group]
        for j, found in enumerate(gradients(call, group, seeds, create_graph=True)):
            if found is None:
                _refuse(f"Output {i}" if each else "The output", j)
            if create_graph and not second and not found.requires_grad:
                _refuse("The jacobian", j, " when create_graph=True")
            slopes.append(found)
    if not second:
        return
    for j, slope in enumerate(slopes):
        if not slope.requires_grad:
            raise DifferentiationError(_LINEAR.format(j))
    seeds = [ones_like(slope).detach() for slope in slopes]
    for j, found in enumerate(gradients(call, slopes, seeds, create_graph=True)):
        if found is None:
            _refuse("The jacobian", j)
        if create_graph and not found.requires_grad:
            _refuse("The hessian", j, " when create_graph=True")


def _refuse(what: str, place: int, when: str = "") -> NoReturn:
    raise DifferentiationError(_INDEPENDENT.format(what, place, when))
