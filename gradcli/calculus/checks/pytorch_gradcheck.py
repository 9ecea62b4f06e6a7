"""`gradcheck` and `gradgradcheck` with the arguments, criteria and messages of PyTorch.

They use one step and one tolerance, given by the caller, and also check that a gradient is reproducible, 0 for a zero
cotangent, and defined for undefined cotangents. `gradcli.calculus.checks.gradcheck` chooses its steps itself.
"""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradcli.autograd.graph import UndefinedGrad
from gradcli.autograd.targets import as_tuple
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.checks.finite_differences import central_differences
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.functions.gradient import grad
from gradcli.calculus.functions.mapping import vmap
from gradcli.errors import (
    ArgumentError,
    DifferentiationError,
    ExpectationError,
    GradcheckError,
    GradcliError,
    expect,
    expect_callable,
)
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import strides
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.shape import stack

Callback = Callable[..., Any]

_SINGLE = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail "
    "if all the inputs are not of double precision floating point or complex. "
)
_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
    "values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {}."
)
_NEW_CHECK = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)
_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation{}: {}"
_PERTURBED = (
    "Expected `func` to return outputs with the same {} when inputs are perturbed on index {}, but got:\n {} and {}."
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
    outputs depend on the numbers, or no mode is to be checked. Complex tensors count as their real and imaginary parts.
    """
    policy = _Policy(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        fast=fast_mode,
        raises=raise_exception,
        backward=check_backward_ad,
        forward=check_forward_ad,
        undefined=check_undefined_grad,
        batched=check_batched_grad,
        batched_forward=check_batched_forward_grad,
    )
    return _check(func, as_tuple(inputs), policy)


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
        cotangents = tuple(_random_like(y, generator).requires_grad_() for y in _differentiable(as_tuple(func(*given))))
    else:
        cotangents = as_tuple(grad_outputs)

    def gradient(*arguments: Any) -> tuple[Any, ...]:
        points, seeds = arguments[: len(given)], arguments[len(given) :]
        points = tuple(
            p.requires_grad_() if isinstance(x, Tensor) and x.requires_grad else p for p, x in zip(points, given)
        )
        outputs = _differentiable(as_tuple(func(*points)))
        found = grad(outputs, _differentiable(points), seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    policy = _Policy(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        fast=fast_mode,
        raises=raise_exception,
        backward=check_rev_over_rev,
        forward=check_fwd_over_rev,
        undefined=check_undefined_grad,
        batched=check_batched_grad,
    )
    return _check(gradient, given + cotangents, policy)


class _Policy(NamedTuple):
    """The step of the differences, the tolerances, the modes that are checked and what is checked beside them, and
    whether a failed check raises."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast: bool
    raises: bool
    backward: bool
    forward: bool
    undefined: bool
    batched: bool
    batched_forward: bool = False


def _check(function: Callback, inputs: tuple[Any, ...], policy: _Policy) -> bool:
    if not (policy.forward or policy.backward):
        raise ExpectationError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if policy.batched and not policy.backward:
        raise ExpectationError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if policy.batched_forward and not policy.forward:
        raise ExpectationError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    expect_callable(function, "gradients of a function are checked")
    _check_inputs(inputs)
    check = _JacobianCheck(function, inputs, policy)
    try:
        check.run()
    except GradcheckError:
        if policy.raises:
            raise
        return False
    return True


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    by = {i: x for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad}
    if not by:
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, x in by.items():
        if x.dtype not in ("float64", "complex128"):
            warnings.warn(_SINGLE.format(i), UserWarning, stacklevel=4)
        if x.place is not None and strides.overlaps(x.place.layout()):
            raise DifferentiationError(_OVERLAP.format(i))


def _differentiable(values: Sequence[Any]) -> list[Tensor]:
    """Return the tensors that require grad."""
    return [x for x in values if _requires_grad(x)]


def _random_like(x: Tensor, generator: random.Random) -> Tensor:
    """Random normal numbers in the shape, dtype and array library of a tensor."""
    return _filled([generator.gauss(0.0, 1.0) for _ in range(_count(x))], x)


class _JacobianCheck:
    """The checks of one function at one point. A failed check raises GradcheckError."""

    def __init__(self, function: Callback, inputs: tuple[Any, ...], policy: _Policy) -> None:
        self.function = function
        self.inputs = inputs
        self.policy = policy
        self.leaves = _differentiable(inputs)
        self.outputs = as_tuple(function(*inputs))
        for output in self.outputs:
            expect(output, Tensor, "the function to check returns tensors")
        self.generator = random.Random(0)

    def run(self) -> None:
        policy = self.policy
        if policy.backward:
            self._backward()
        if policy.forward:
            self._forward()
            if policy.undefined:
                self._undefined_tangents()
        if policy.batched_forward:
            self._batched_tangents()
        if policy.backward:
            self._backward_beside()

    # --- reverse mode

    def _backward(self) -> None:
        """Compare the Jacobians of reverse mode with differences."""
        outputs = _differentiable(self.outputs)
        if not outputs:
            self._check_constant()
            return
        along = [self._directions(x) for x in self.leaves]
        weights = [self._directions(y) for y in outputs]
        numerical = [self._differences(x, rows, _differentiable) for x, rows in zip(self.leaves, along)]
        for i, (output, rows) in enumerate(zip(outputs, weights)):
            found, again = (self._gradients(output, rows) for _ in range(2))
            if any(abs(one - other).max(initial=0.0) > self.policy.nondet_tol for one, other in zip(found, again)):
                raise GradcheckError(_NOT_REENTRANT.format(self.policy.nondet_tol))
            for j, jacobian in enumerate(found):
                self._compare(i, j, jacobian @ along[j].T, rows @ numerical[j][i].T, rows, along[j])

    def _gradients(self, output: Tensor, weights: Any) -> list[Any]:
        """Return for each leaf the gradients of `output` weighted by each row of `weights`."""
        if self.policy.fast:
            found = gradients(output, self.leaves, _filled(weights, output))
        elif output.is_complex():
            rows = [gradients(output, self.leaves, _filled(row, output)) for row in weights]
            return [
                _stacked([_rows(g, 1, _count(x))[0] for g in of_leaf], _count(x))
                for of_leaf, x in zip(zip(*rows), self.leaves)
            ]
        else:
            found = jacobians(output, self.leaves)
        return [_rows(g, len(weights), _count(x)) for g, x in zip(found, self.leaves)]

    def _backward_beside(self) -> None:
        """Check reverse mode for batched, zero and undefined cotangents."""
        outputs = _differentiable(self.outputs)
        for i, output in enumerate(outputs if self.policy.batched else ()):
            self._check_batched(i, output)
        if not outputs:
            return
        zeros = [zeros_like(y.detach()) for y in outputs]
        for gradient in grad(outputs, self.leaves, zeros, retain_graph=True, allow_unused=True):
            if gradient is not None and not _is_zero(gradient):
                raise GradcheckError("backward not multiplied by grad_output")
        if self.policy.undefined:
            self._check_undefined(len(outputs))

    def _check_batched(self, number: int, output: Tensor) -> None:
        rows = [_random_like(output, self.generator) for _ in range(2)]
        options = {"retain_graph": True, "materialize_grads": True}
        self._compare_batch(
            f" of output {number}",
            lambda: grad(output, self.leaves, stack(rows), is_grads_batched=True, **options),
            [grad(output, self.leaves, row, **options) for row in rows],
        )

    def _compare_batch(self, what: str, together: Callable[[], Sequence[Any]], apart: Sequence[Sequence[Any]]) -> None:
        """Compare derivatives of several rows that are computed together with those of each row."""
        try:
            found = together()
        except GradcliError as error:
            raise GradcheckError(_BATCHED.format(what, error.message)) from error
        for i, (whole, *rows) in enumerate(zip(found, *apart)):
            if not self._agree(_numbers(whole), _numbers(stack(rows))):
                raise GradcheckError(_BATCHED.format(what, f"number {i} is another than that of each"))

    def _check_undefined(self, count: int) -> None:
        """Check that all outputs, and each one of several outputs, may have an undefined cotangent."""
        for chosen in [range(count), *([i] for i in range(count) if count > 1)]:
            outputs = _differentiable(as_tuple(self.function(*self.inputs)))
            undefined = [UndefinedGrad.apply(y) if i in chosen else y for i, y in enumerate(outputs)]
            zeros = [zeros_like(y.detach()) for y in outputs]
            try:
                found = grad(undefined, self.leaves, zeros, allow_unused=True)
            except RuntimeError as error:
                raise _undefined("Expected backward function to handle undefined output grads.") from error
            if not all(gradient is None or _is_zero(gradient) for gradient in found):
                raise _undefined(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
                )

    # --- forward mode

    def _forward(self) -> None:
        """Compare directional derivatives of forward mode with differences."""
        outputs = _floating(self.outputs)
        if not outputs:
            self._check_constant()
            return
        weights = [self._directions(y) for y in outputs]
        for j, leaf in enumerate(self.leaves):
            along = self._directions(leaf)
            numerical = self._differences(leaf, along, _floating)
            tangents = [self._pushed({j: _filled(row, leaf)}) for row in along]
            for i, (rows, *pushed) in enumerate(zip(weights, *tangents)):
                forward = _stacked([_numbers(t) for t in pushed], _count(outputs[i]))
                self._compare(i, j, rows @ forward.T, rows @ numerical[i].T, rows, along, forward=True)

    def _pushed(self, tangents: dict[int, Any]) -> tuple[Any, ...]:
        """Return the derivative of each output along the tangents of leaves.

        A leaf whose tangent is None gets no tangent at all; one that is not in `tangents` gets zeros.
        """
        with dual_level():
            leaves = iter(range(len(self.leaves)))
            duals = [
                _dual(x, tangents.get(next(leaves), zeros_like(x.detach()))) if _requires_grad(x) else x
                for x in self.inputs
            ]
            outputs = [unpack_dual(y) for y in _floating(as_tuple(self.function(*duals)))]
        return tuple(zeros_like(primal) if tangent is None else tangent for primal, tangent in outputs)

    def _undefined_tangents(self) -> None:
        """Check that a leaf without a tangent counts as one with a zero tangent."""
        all_of_them = {j: _random_like(x, self.generator) for j, x in enumerate(self.leaves)}
        for j, leaf in enumerate(self.leaves):
            zero, none = (self._pushed({**all_of_them, j: t}) for t in (zeros_like(leaf.detach()), None))
            for i, (one, other) in enumerate(zip(zero, none)):
                if not self._agree(_numbers(one), _numbers(other)):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {i} when input: {j} has an undefined "
                        "tangent value."
                    )

    def _batched_tangents(self) -> None:
        """Check that batched tangents give the same results as single ones."""
        for j, leaf in enumerate(self.leaves):
            rows = [_random_like(leaf, self.generator) for _ in range(2)]
            along = functools.partial(self._pushed_alone, j)
            self._compare_batch(
                f" with forward mode by input {j}",
                functools.partial(vmap(along), stack(rows)),
                [along(row) for row in rows],
            )

    def _pushed_alone(self, number: int, tangent: Any) -> tuple[Any, ...]:
        return self._pushed({**dict.fromkeys(range(len(self.leaves))), number: tangent})

    # --- differences

    def _check_constant(self) -> None:
        """Check that outputs that cannot be differentiated do not change with the inputs."""
        for leaf in self.leaves:
            if any(d.any() for d in self._differences(leaf, self._directions(leaf), _tensors)):
                raise GradcheckError("Numerical gradient for function expected to be zero")

    def _differences(self, leaf: Tensor, along: Any, choose: Callback) -> list[Any]:
        """Return for each chosen output its derivative along each direction, of shape (directions, elements)."""
        numbers, own = _numbers(leaf), leaf.data
        chosen = choose(self.outputs)
        kept, expected = own.clone(), [(y.shape, y.dtype) for y in chosen]

        def moved(number: int, distance: float) -> list[Any]:
            own.copy_(_filled(numbers + distance * along[number], own))
            # Clones, because an output may share the memory of the leaf.
            outputs = [y.clone() for y in choose(as_tuple(self.function(*self.inputs)))]
            for known, output in zip(expected, outputs):
                _check_alike(number, known, output)
            return [*map(_numbers, outputs)]

        rows: list[list[Any]] = [[] for _ in expected]
        try:
            for number in range(len(along)):
                slopes = central_differences(functools.partial(moved, number), self.policy.eps)
                for of_output, slope in zip(rows, slopes):
                    of_output.append(slope)
        finally:
            own.copy_(kept)
        return [_stacked(r, _count(y)) for r, y in zip(rows, chosen)]

    def _directions(self, x: Tensor) -> Any:
        """The unit vectors of all elements, or with `fast` one random direction."""
        xp = arrays.numpy_namespace()
        if not self.policy.fast:
            return xp.eye(_count(x))
        found = xp.asarray([self.generator.random() for _ in range(_count(x))]).reshape(1, _count(x))
        return found / ((found**2).sum() ** 0.5 or 1.0)

    def _compare(
        self, i: int, j: int, analytical: Any, numerical: Any, weights: Any, along: Any, *, forward: bool = False
    ) -> None:
        # In a weighted sum of all entries, the tolerances of the entries add up.
        atol = self.policy.atol * float(weights.sum() * along.sum()) if self.policy.fast else self.policy.atol
        if self._agree(analytical, numerical, atol):
            return
        mode = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
        where = self._differing_part(i, j, analytical, numerical, forward)
        raise GradcheckError(
            f"{where}{mode} for output {i} with respect to input {j},\nnumerical:{numerical.T}\nanalytical:{analytical.T}\n"
        )

    def _differing_part(self, i: int, j: int, found: Any, expected: Any, forward: bool) -> str:
        """The beginning of a message that says which part of complex outputs, or in forward mode inputs, differs."""
        of = self.leaves[j] if forward else _differentiable(self.outputs)[i]
        if not of.is_complex():
            return ""
        place = (slice(None), slice(1, None, 2)) if forward else slice(1, None, 2)
        part = "real" if self.policy.fast or self._agree(found[place], expected[place]) else "imaginary"
        return f"While considering the {part} part of complex {'inputs' if forward else 'outputs'} only, "

    def _agree(self, found: Any, expected: Any, atol: float | None = None) -> bool:
        xp = arrays.numpy_namespace()
        return bool(xp.allclose(found, expected, self.policy.rtol, self.policy.atol if atol is None else atol))


def _undefined(message: str) -> GradcheckError:
    warnings.warn(_NEW_CHECK, UserWarning, stacklevel=7)
    return GradcheckError(message)


def _requires_grad(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [x for x in values if isinstance(x, Tensor)]


def _floating(values: Sequence[Any]) -> list[Tensor]:
    return [x for x in _tensors(values) if arrays.is_inexact(x.inner)]


def _dual(x: Tensor, tangent: Tensor | None) -> Tensor:
    point: Tensor = x.detach()
    return point if tangent is None else make_dual(point, tangent)


def _filled(numbers: Any, like: Tensor) -> Tensor:
    """Numbers in the shape, dtype and array library of a tensor."""
    xp = arrays.numpy_namespace()
    array = xp.ascontiguousarray(xp.asarray(numbers, arrays.real_dtype(like.dtype)))
    array = array.view(like.dtype).reshape(like.shape)
    return Tensor(arrays.like_library_of(array, like.inner))


def _numbers(x: Tensor) -> Any:
    """The elements of a tensor as a float64 vector; of a complex one the parts of each element in turn."""
    xp = arrays.numpy_namespace()
    wide = xp.asarray(arrays.on_host(x.detach().inner), "complex128" if x.is_complex() else "float64")
    return xp.ascontiguousarray(wide).reshape(-1).view("float64")


def _count(x: Tensor) -> int:
    """The length of the vector `_numbers`."""
    return x.size * (2 if x.is_complex() else 1)


def _is_zero(x: Tensor) -> bool:
    return not _numbers(x).any()


def _stacked(rows: Sequence[Any], size: int) -> Any:
    return arrays.numpy_namespace().asarray(rows, "float64").reshape(len(rows), size)


def _rows(gradient: Tensor | None, count: int, size: int) -> Any:
    xp = arrays.numpy_namespace()
    return xp.zeros((count, size)) if gradient is None else _numbers(gradient).reshape(count, size)


def _check_alike(number: int, expected: tuple[Any, str], found: Tensor) -> None:
    """Raise ExpectationError where an output has another shape or dtype than at the point itself."""
    for what, one, other in zip(("shape", "dtype"), expected, (found.shape, found.dtype)):
        if one != other:
            raise ExpectationError(_PERTURBED.format(what, number, one, other))
