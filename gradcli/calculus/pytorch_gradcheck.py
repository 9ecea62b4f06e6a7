"""`gradcheck` and `gradgradcheck` with the arguments, criteria and messages of PyTorch.

They use one step and one tolerance, given by the caller, and also check that a gradient is reproducible, 0 for a zero
cotangent, and defined for undefined cotangents. `gradcli.calculus.gradcheck` chooses its steps itself.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

from gradcli.autograd.targets import as_tuple
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.gradient import grad
from gradcli.calculus.jacobian_check import JacobianCheck, differentiable, random_like
from gradcli.errors import ArgumentError, DifferentiationError, ExpectationError, GradcheckError, expect_callable
from gradcli.primitives import strides

Callback = Callable[..., Any]

_SINGLE = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail "
    "if all the inputs are not of double precision floating point or complex. "
)
_OVERLAP = (
    "The {}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
    "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
    "gradcheck."
)


def gradcheck(
    func: Callback,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare the Jacobians of `func` with central differences of step `eps` at `inputs`, a tensor or a tuple of
    anything.

    Derivatives are taken of outputs that require grad, by inputs that do, which should be float64. Entries agree within
    `atol` and `rtol`; in `fast_mode` sums of entries with random weights are compared. Two computations of a gradient
    may differ by `nondet_tol`. Optional checks cover undefined gradients, batched cotangents, batched tangents and
    forward mode. Returns True. Where something differs, raises GradcheckError, or returns False without
    `raise_exception`. Raises ArgumentError where no input requires grad, and ExpectationError where shapes or dtypes of
    outputs depend on the numbers, or no mode is to be checked.
    """
    if not (check_forward_ad or check_backward_ad):
        raise ExpectationError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise ExpectationError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ExpectationError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    expect_callable(func, "gradients of a function are checked")
    _check_inputs(as_tuple(inputs))
    check = JacobianCheck(func, as_tuple(inputs), eps, atol, rtol, nondet_tol, fast_mode)
    try:
        if check_backward_ad:
            check.backward()
        if check_forward_ad:
            check.forward()
            if check_undefined_grad:
                check.undefined_tangents()
        if check_batched_forward_grad:
            check.batched_tangents()
        if check_backward_ad:
            check.backward_beside(batched=check_batched_grad, undefined=check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callback,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Apply `gradcheck` to the gradients of `func`, by `inputs` and by the cotangents of its outputs.

    The cotangents are `grad_outputs`, tensors that require grad, or random. Gradients are differentiated in reverse
    mode, and with `check_fwd_over_rev` in forward mode. Raises and returns as `gradcheck` does.
    """
    expect_callable(func, "gradients of a function are checked")
    given = as_tuple(inputs)
    if grad_outputs is None:
        generator = random.Random(0)
        cotangents = tuple(random_like(y, generator).requires_grad_() for y in differentiable(as_tuple(func(*given))))
    else:
        cotangents = as_tuple(grad_outputs)

    def gradient(*arguments: Any) -> tuple[Any, ...]:
        points, seeds = arguments[: len(given)], arguments[len(given) :]
        points = tuple(
            p.requires_grad_() if isinstance(x, Tensor) and x.requires_grad else p for p, x in zip(points, given)
        )
        outputs = differentiable(as_tuple(func(*points)))
        found = grad(outputs, differentiable(points), seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient,
        given + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    by = {i: x for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad}
    if not by:
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, x in by.items():
        if x.dtype != "float64":
            warnings.warn(_SINGLE.format(i), UserWarning, stacklevel=3)
        if x.place is not None and strides.overlaps(x.place.layout()):
            raise DifferentiationError(_OVERLAP.format(i))
