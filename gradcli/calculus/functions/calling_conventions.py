"""`grad`, `jacobian` and `hessian` in both calling conventions: PyTorch's, of computed tensors or at a point, and HIPS
autograd's, of a function alone."""

from __future__ import annotations

import functools
from typing import Any

from gradcli.calculus.functions import differential_operators, gradient, point_derivatives


@functools.wraps(gradient.grad)
def grad(outputs: Any, *arguments: Any, **options: Any) -> Any:
    if callable(outputs):
        return differential_operators.grad(outputs, *arguments, **options)
    return gradient.grad(outputs, *arguments, **options)


@functools.wraps(point_derivatives.jacobian)
def jacobian(function: Any, *arguments: Any, **options: Any) -> Any:
    if _of_function_alone(arguments, options):
        return differential_operators.jacobian(function, *arguments, **options)
    return point_derivatives.jacobian(function, *arguments, **options)


@functools.wraps(point_derivatives.hessian)
def hessian(function: Any, *arguments: Any, **options: Any) -> Any:
    if _of_function_alone(arguments, options):
        return differential_operators.hessian(function, *arguments, **options)
    return point_derivatives.hessian(function, *arguments, **options)


def _of_function_alone(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether no point is given: integers cannot be differentiated by, so they are argument numbers."""
    if not arguments:
        return "inputs" not in options
    places = arguments[0] if isinstance(arguments[0], (tuple, list)) else arguments[:1]
    return len(arguments) == 1 and len(places) > 0 and all(type(place) is int for place in places)


for _form, _of_function in (
    (grad, "grad(f) of a function f alone is that of `gradcli.calculus.functions.differential_operators`."),
    (jacobian, "Without `inputs` it is the function that gives the Jacobian by the argument `argnum`."),
    (hessian, "Without `inputs` it is the function that gives the second derivatives by the argument `argnum`."),
):
    _form.__doc__ = f"{(_form.__doc__ or '').rstrip()}\n\n    {_of_function}\n    "
