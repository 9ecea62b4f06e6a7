"""Compares Jacobians with finite differences of one step, and checks batched and undefined gradients: PyTorch's
`gradcheck`."""

from __future__ import annotations

import functools
import math
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradcli.autograd.graph import UndefinedGrad
from gradcli.autograd.targets import as_tuple
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.gradient import grad
from gradcli.calculus.mapping import vmap
from gradcli.errors import ExpectationError, GradcheckError, GradcliError, expect
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.shape import stack

Callback = Callable[..., Any]

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


def differentiable(values: Sequence[Any]) -> list[Tensor]:
    """Return the tensors that require grad."""
    return [x for x in values if _requires_grad(x)]


def random_like(x: Tensor, generator: random.Random) -> Tensor:
    """Random normal numbers in the shape, dtype and array library of a tensor."""
    return _filled([generator.gauss(0.0, 1.0) for _ in range(x.size)], x)


class JacobianCheck:
    """The checks of one function at one point. A failed check raises GradcheckError."""

    def __init__(
        self,
        function: Callback,
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        fast: bool,
    ) -> None:
        self.function = function
        self.inputs = inputs
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.fast = fast
        self.leaves = differentiable(inputs)
        self.outputs = as_tuple(function(*inputs))
        for output in self.outputs:
            expect(output, Tensor, "the function to check returns tensors")
        self.generator = random.Random(0)

    # --- reverse mode

    def backward(self) -> None:
        """Compare the Jacobians of reverse mode with differences."""
        outputs = differentiable(self.outputs)
        if not outputs:
            self._check_constant()
            return
        along = [self._directions(x) for x in self.leaves]
        weights = [self._directions(y) for y in outputs]
        numerical = [self._differences(x, rows, differentiable) for x, rows in zip(self.leaves, along)]
        for i, (output, rows) in enumerate(zip(outputs, weights)):
            found, again = (self._gradients(output, rows) for _ in range(2))
            if any(abs(one - other).max(initial=0.0) > self.nondet_tol for one, other in zip(found, again)):
                raise GradcheckError(_NOT_REENTRANT.format(self.nondet_tol))
            for j, jacobian in enumerate(found):
                self._compare(i, j, jacobian @ along[j].T, rows @ numerical[j][i].T, rows, along[j])

    def _gradients(self, output: Tensor, weights: Any) -> list[Any]:
        """Return for each leaf the gradients of `output` weighted by each row of `weights`."""
        if self.fast:
            found = gradients(output, self.leaves, _filled(weights, output))
        else:
            found = jacobians(output, self.leaves)
        return [_rows(g, len(weights), x.size) for g, x in zip(found, self.leaves)]

    def backward_beside(self, *, batched: bool, undefined: bool) -> None:
        """Check reverse mode for batched, zero and undefined cotangents."""
        outputs = differentiable(self.outputs)
        for i, output in enumerate(outputs if batched else ()):
            self._check_batched(i, output)
        if not outputs:
            return
        zeros = [zeros_like(y.detach()) for y in outputs]
        for gradient in grad(outputs, self.leaves, zeros, retain_graph=True, allow_unused=True):
            if gradient is not None and not _is_zero(gradient):
                raise GradcheckError("backward not multiplied by grad_output")
        if undefined:
            self._check_undefined(len(outputs))

    def _check_batched(self, number: int, output: Tensor) -> None:
        rows = [random_like(output, self.generator) for _ in range(2)]
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
            outputs = differentiable(as_tuple(self.function(*self.inputs)))
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

    def forward(self) -> None:
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
                forward = _stacked([_numbers(t) for t in pushed], outputs[i].size)
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

    def undefined_tangents(self) -> None:
        """Check that a leaf without a tangent counts as one with a zero tangent."""
        all_of_them = {j: random_like(x, self.generator) for j, x in enumerate(self.leaves)}
        for j, leaf in enumerate(self.leaves):
            zero, none = (self._pushed({**all_of_them, j: t}) for t in (zeros_like(leaf.detach()), None))
            for i, (one, other) in enumerate(zip(zero, none)):
                if not self._agree(_numbers(one), _numbers(other)):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {i} when input: {j} has an undefined "
                        "tangent value."
                    )

    def batched_tangents(self) -> None:
        """Check that batched tangents give the same results as single ones."""
        for j, leaf in enumerate(self.leaves):
            rows = [random_like(leaf, self.generator) for _ in range(2)]
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
        kept, expected = own.clone(), [(y.shape, y.dtype) for y in choose(self.outputs)]
        rows: list[list[Any]] = [[] for _ in expected]
        try:
            for number, row in enumerate(along):
                step = self.eps * row
                before, after = (self._perturbed(own, numbers + s, choose) for s in (-step, step))
                for known, one, other in zip(expected, before, after):
                    _check_alike(number, known, one, other)
                for of_output, one, other in zip(rows, before, after):
                    of_output.append((_numbers(other) - _numbers(one)) / (2 * self.eps))
        finally:
            own.copy_(kept)
        return [_stacked(r, math.prod(shape)) for r, (shape, _) in zip(rows, expected)]

    def _perturbed(self, own: Tensor, numbers: Any, choose: Callback) -> list[Any]:
        own.copy_(_filled(numbers, own))
        return [y.clone() for y in choose(as_tuple(self.function(*self.inputs)))]

    def _directions(self, x: Tensor) -> Any:
        """The unit vectors of all elements, or with `fast` one random direction."""
        xp = arrays.numpy_namespace()
        if not self.fast:
            return xp.eye(x.size)
        found = xp.asarray([self.generator.random() for _ in range(x.size)]).reshape(1, x.size)
        return found / ((found**2).sum() ** 0.5 or 1.0)

    def _compare(
        self, i: int, j: int, analytical: Any, numerical: Any, weights: Any, along: Any, *, forward: bool = False
    ) -> None:
        # In a weighted sum of all entries, the tolerances of the entries add up.
        atol = self.atol * float(weights.sum() * along.sum()) if self.fast else self.atol
        if self._agree(analytical, numerical, atol):
            return
        prefix = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
        raise GradcheckError(
            f"{prefix} for output {i} with respect to input {j},\nnumerical:{numerical.T}\nanalytical:{analytical.T}\n"
        )

    def _agree(self, found: Any, expected: Any, atol: float | None = None) -> bool:
        xp = arrays.numpy_namespace()
        return bool(xp.allclose(found, expected, self.rtol, self.atol if atol is None else atol))


def _undefined(message: str) -> GradcheckError:
    warnings.warn(_NEW_CHECK, UserWarning, stacklevel=6)
    return GradcheckError(message)


def _requires_grad(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [x for x in values if isinstance(x, Tensor)]


def _floating(values: Sequence[Any]) -> list[Tensor]:
    return [x for x in _tensors(values) if arrays.is_floating(x.inner)]


def _dual(x: Tensor, tangent: Tensor | None) -> Tensor:
    point: Tensor = x.detach()
    return point if tangent is None else make_dual(point, tangent)


def _filled(numbers: Any, like: Tensor) -> Tensor:
    """Numbers in the shape, dtype and array library of a tensor."""
    array = arrays.numpy_namespace().asarray(numbers, like.dtype).reshape(like.shape)
    return Tensor(arrays.like_library_of(array, like.inner))


def _numbers(x: Tensor) -> Any:
    """The elements of a tensor as a float64 vector."""
    return arrays.numpy_namespace().asarray(arrays.on_host(x.detach().inner), "float64").reshape(-1)


def _is_zero(x: Tensor) -> bool:
    return not _numbers(x).any()


def _stacked(rows: Sequence[Any], size: int) -> Any:
    return arrays.numpy_namespace().asarray(rows, "float64").reshape(len(rows), size)


def _rows(gradient: Tensor | None, count: int, size: int) -> Any:
    xp = arrays.numpy_namespace()
    return xp.zeros((count, size)) if gradient is None else _numbers(gradient).reshape(count, size)


def _check_alike(number: int, expected: tuple[Any, str], *found: Tensor) -> None:
    """Raise ExpectationError where outputs have another shape or dtype than at the point itself."""
    for output in found:
        for what, one, other in zip(("shape", "dtype"), expected, (output.shape, output.dtype)):
            if one != other:
                raise ExpectationError(_PERTURBED.format(what, number, one, other))
