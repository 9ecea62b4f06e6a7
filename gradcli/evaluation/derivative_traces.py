"""Records the value and derivatives of a program as a straight-line program, and finds its numbers that are detached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradcli.autograd.modes import enable_grad
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.first_orders import Derivatives, Function, note_kinks
from gradcli.calculus.higher_orders import derivatives, derivatives_with_shadow, scalar
from gradcli.calculus.jacobians import jacobians_by_either_mode
from gradcli.errors import NotRecordableError, locating
from gradcli.evaluation.row_evaluation import differentiated
from gradcli.executors import stepwise
from gradcli.kinds.branch_points import EQUALITIES, BranchPointWatcher, watcher_now, watching
from gradcli.language.interpreter.machine import Rolling
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import without_dead_code
from gradcli.program.record import Decisions, Following, Recorded, record

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation


# The input name of the cotangent. The spaces keep it apart from the names of the language.
_COTANGENT = "gradient of the value"

# Differentiates a function at inputs by name; returns the value and the derivatives.
Differentiate = Callable[[Function, Mapping[str, Any]], Derivatives]
# Input names of detached numbers. The space keeps them apart from the names of the language.
_NAME = "detached {}"


class Trace(NamedTuple):
    """A straight-line program whose first output is the value, and the values of its outputs at recording.

    `positions` has the output index of each derivative; None for one by a leaf that the value does not depend on.
    `deviations` has that of the distance of watched derivatives from their shadows.
    """

    program: Program
    values: tuple[Any, ...]
    positions: dict[str, int | None]
    deviations: dict[str, int | None]
    # The variables that derivatives of the gradient treat as constants.
    detached: tuple[Variable, ...] = ()


class Outcome(NamedTuple):
    """The results of a recorded program.

    `value` is None where only second derivatives are wanted. A derivative is None by a leaf that the value does not
    depend on. `deviations` are the distances of watched derivatives from their shadows.
    """

    value: Any
    derivatives: dict[str, Any]
    deviations: Mapping[str, Any] = MappingProxyType({})


def value_and_gradients(
    program: Computation,
    inputs: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    cotangent: Any = None,
    fixed: Mapping[str, Any] = MappingProxyType({}),
    rewrite: bool = True,
) -> Trace:
    """Record the value of `program` for `inputs`, arrays by name, and its gradient by each of `wrt`.

    The `cotangent` of a non-scalar value becomes the last input. Inputs in `fixed` become constants of the recording.
    Raises NotRecordableError, with its position, where
    control flow depends on the numbers of an input, and what `evaluate` and `gradients` raise.
    """

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        weights = None if cotangent is None else Tensor(given[_COTANGENT])
        return _gradients(lambda leaves: run({**fixed, **leaves}), given, wrt, weights)

    given = inputs if cotangent is None else {**inputs, _COTANGENT: cotangent}
    return _traced(program, given, differentiate, rewrite=rewrite)


def value_and_jacobians(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str]) -> Trace:
    """Like `value_and_gradients`, with the Jacobian by each of `wrt`."""

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        leaves = _leaves(given, wrt)
        value = _watched_value(run, leaves)
        with watching(None):
            return Derivatives(value, jacobians_by_either_mode(run, leaves, value))

    return _traced(program, inputs, differentiate)


def gradients_of_scalar(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str], **options: Any) -> Trace:
    """Like `value_and_gradients`, for further differentiation.

    The trace names the variables that are constants to further derivatives, and is valid only away from kinks. Raises
    DifferentiationError for a non-scalar value, and NotRecordableError for a variable that is both a constant and
    differentiated.
    """
    detached: list[Variable] = []

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        leaves = _leaves(given, wrt)
        with watching(BranchPointWatcher()):
            value = scalar(run(leaves))
            note_kinks(value)
        written = any(not isinstance(node, PrimitiveNode) for node in ancestors(value))
        found = gradients(value, [*leaves.values()], create_graph=written)
        detached[:] = _detached_variables([value, *(found if written else ())], [*leaves.values()])
        if written and detached:
            # User-defined rules detach in ways of their own.
            raise NotRecordableError("what a derivative written by hand detaches cannot be recorded")
        return Derivatives(value, dict(zip(wrt, found)))

    return _traced(program, inputs, differentiate, **options)._replace(detached=tuple(detached))


def value_and_derivatives(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
    """Like `value_and_gradients`, with all derivatives up to `order`, keyed as by `derivatives`."""

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        return derivatives_with_shadow(run, {name: given[name] for name in wrt}, order)

    return _traced(program, inputs, differentiate)


def row_derivatives(
    program: Computation,
    inputs: Mapping[str, Any],
    fixed: Mapping[str, Any],
    wrt: Sequence[str],
    order: int,
    *,
    apart: bool,
) -> Trace:
    """Record the value and all derivatives up to `order`, keyed as by `differentiated`, on the execution path of
    `inputs`.

    Inputs in `fixed` become constants of the recording. For `apart` see `Decisions`.
    """

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        return differentiated(run, {**fixed, **given}, wrt, order)

    return _traced(program, inputs, differentiate, decisions=Following(apart=apart))


def value_and_hessian(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str]) -> Trace:
    """Like `value_and_gradients`, with only the second derivatives."""

    def differentiate(run: Function, given: Mapping[str, Any]) -> Derivatives:
        value, found = derivatives(run, {name: given[name] for name in wrt}, 2)
        return Derivatives(value, {key: d for key, d in found.items() if "," in key})

    return _traced(program, inputs, differentiate)


def _gradients(run: Function, given: Mapping[str, Any], wrt: Sequence[str], weights: Any = None) -> Derivatives:
    leaves = _leaves(given, wrt)
    value = _watched_value(run, leaves)
    with watching(None):
        return Derivatives(value, dict(zip(wrt, gradients(value, [*leaves.values()], weights, retain_graph=False))))


def _watched_value(run: Function, leaves: Mapping[str, Tensor]) -> Any:
    """Compute the value for a recording of first derivatives.

    The recording is valid where no equality decides a branch; a watcher that is already installed may impose a stricter
    condition.
    """
    if watcher_now() is not None:
        return run(leaves)
    with watching(BranchPointWatcher(EQUALITIES)):
        value = run(leaves)
        note_kinks(value)
        return value


def _leaves(given: Mapping[str, Any], wrt: Sequence[str]) -> dict[str, Tensor]:
    return {name: Tensor(given[name]).requires_grad_() for name in wrt}


def _traced(
    program: Computation,
    inputs: Mapping[str, Any],
    differentiate: Differentiate,
    *,
    rewrite: bool = True,
    rolling: Rolling = "early",
    decisions: Decisions | None = None,
) -> Trace:
    positions: dict[str, int | None] = {}
    deviations: dict[str, int | None] = {}

    def run(**given: Any) -> list[Any]:
        bindings = {name: value for name, value in given.items() if name != _COTANGENT}

        def function(leaves: Mapping[str, Any]) -> Any:
            if isinstance(program, tree.Module):
                return evaluate(program, {**bindings, **leaves}, rewrite=rewrite, rolling=rolling).value
            return program.recordable_value({**bindings, **leaves})

        with enable_grad():
            value, found, apart = differentiate(function, given)
        outputs = [value]
        for places, named in ((positions, found), (deviations, apart)):
            for name, number in named.items():
                places[name] = None if number is None else len(outputs)
                outputs += [] if number is None else [number]
        return outputs

    with locating(program.source, program.body[-1].span) if isinstance(program, tree.Module) else program.recording():
        traced = record(run, inputs, decisions)
    return Trace(traced.program, traced.values, positions, deviations)


def _detached_variables(values: Sequence[Any], leaves: Sequence[Tensor]) -> tuple[Variable, ...]:
    """Return the variables that the gradients of `values` by `leaves`, while being recorded, treat as constants.

    Raises NotRecordableError where such a variable is also differentiated through another use.
    """
    constants: dict[Variable, None] = {}
    attached = {variable for leaf in leaves for variable in _variables(leaf.inner)}
    for node in ancestors(*values):
        if not isinstance(node, PrimitiveNode):
            continue
        attached.update(_variables(node.result))
        for edge, kept in zip(node.edges, node.saved or ()):
            if isinstance(kept, Tensor) and kept.requires_grad:
                attached.update(_variables(kept.inner))
            elif edge is None:
                constants |= dict.fromkeys(_variables(kept.inner if isinstance(kept, Tensor) else kept))
    if not attached.isdisjoint(constants):
        raise NotRecordableError("what is detached here is differentiated elsewhere, so it cannot be recorded")
    return tuple(constants)


def _variables(value: Any) -> Sequence[Variable]:
    return [value.variable] if isinstance(value, Recorded) else []


class SplitGradient(NamedTuple):
    """A gradient that takes its detached variables as inputs, and the program that computes them (None: no such
    variables)."""

    gradient: Program
    detached: Program | None

    def given(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of the gradient by name, computed from the inputs of the program."""
        if self.detached is None:
            return dict(inputs)
        found = stepwise.run(self.detached, [inputs[v.name or ""] for v in self.detached.inputs])
        assert found is not None
        return {**inputs, **{_NAME.format(i): number for i, number in enumerate(found)}}


def separated(gradient: Program, detached: Sequence[Variable]) -> SplitGradient:
    """Split a recorded gradient into the gradient proper and the program of its detached variables."""
    made = {equation.output for equation in gradient.equations}
    detached = [variable for variable in detached if variable in made]
    if not detached:
        return SplitGradient(gradient, None)
    named = {v: Variable(v.shape, v.dtype, _NAME.format(i)) for i, v in enumerate(detached)}
    equations = tuple(
        e._replace(inputs=tuple(named.get(atom, atom) if isinstance(atom, Variable) else atom for atom in e.inputs))
        for e in gradient.equations
    )
    outputs = tuple(named.get(atom, atom) if isinstance(atom, Variable) else atom for atom in gradient.outputs)
    rest = gradient._replace(inputs=(*gradient.inputs, *named.values()), equations=equations, outputs=outputs)
    return SplitGradient(
        without_dead_code(rest), without_dead_code(gradient._replace(outputs=tuple(detached), guards=()))
    )
