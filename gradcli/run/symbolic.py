"""The derivatives of a program as formulas: recorded, and simplified."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.partials import partials
from gradcli.errors import DifferentiationError, LimitError, NotRecordableError, ShapeError, pointing_into
from gradcli.formulas.documents import Formulas
from gradcli.formulas.formula import formula
from gradcli.kinds.taylor import check_order
from gradcli.language import scope
from gradcli.language.interpreter import evaluate
from gradcli.language.reading import read
from gradcli.language.syntax import tree
from gradcli.primitives.axes import MOST_AXES
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.comparisons import isfinite
from gradcli.primitives.conversions import cast
from gradcli.program.ir import Program
from gradcli.program.passes import optimise, separated
from gradcli.program.record import RecordedRun, record

# Where names without a value are recorded, one after the other, until every number is finite. They are
# irrational, so that what is equal there is equal everywhere.
_SCALES = (0.5641895835477563, 1.6487212707001282, 0.1353352832366127, 3.0419241001047387, -0.5641895835477563)
_STEP = 0.0728771355234467

# The least that a derivative takes, in eighths of steps.
_DERIVATIVE = 30 * limits.STEP


def derivatives_as_formulas(
    program: tree.Module,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
    order: int = 1,
) -> Formulas:
    """The derivatives of `order` of a program's value by the names `wrt`, each mixed one once.

    A number among `bindings` is put in for its name, unless the name is in `wrt`; a tensor gives
    its name the shape that the formula is for. Every other name stands for any number. Raises
    NotRecordableError where there is no single formula, as the course of the program depends on
    numbers, DifferentiationError for a value that is no scalar, LimitError past order 170.
    """
    with pointing_into(program.source, program.body[-1].span):
        _check(bindings, wrt, order)
        traced = _traced(program, bindings, wrt, order)
        keys = (",".join(names) for names in itertools.combinations_with_replacement(wrt, order))
        found = {key: formula(derivative) for key, derivative in zip(keys, traced.derivatives, strict=True)}
    return Formulas(program.source, traced.value, found)


def parsed_formula(text: str, like: Program) -> Program:
    """A formula in the expression language, of the inputs of another program, as a program."""
    inputs = {v.name or "": _example(v.shape, i, _SCALES[0]) for i, v in enumerate(like.inputs)}
    program = read(text)
    traced = record(lambda **given: [_value(program, given)], inputs)
    return optimise(traced.program._replace(guards=()))


def _check(bindings: Mapping[str, Any], wrt: Sequence[str], order: int) -> None:
    check_order(order)
    if order * max(len(arrays.shape(bindings.get(name, 0.0))) for name in wrt) > MOST_AXES:
        raise LimitError(f"a derivative of order {order} by a tensor has more than {MOST_AXES} axes")
    limits.charge_steps(_DERIVATIVE * math.comb(len(wrt) + order - 1, order))


class _Traced(NamedTuple):
    """The program of a value, those of its derivatives, and whether these are finite where they were recorded."""

    value: Program
    derivatives: Sequence[Program]
    finite: bool


def _traced(program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], order: int) -> _Traced:
    """The value and its derivatives, recorded at a point where all of them are finite."""
    by = frozenset(wrt)
    fixed = {n: v for n, v in bindings.items() if n not in by and not arrays.shape(v)}
    recorder = _Recorder(program, fixed, wrt, order)
    by_series = order > 2 and not any(arrays.shape(bindings.get(name, 0.0)) for name in wrt) and _is_plain(program)
    traced = None
    for inputs in _points(program, bindings, wrt, fixed):
        traced = recorder.by_series(inputs) if by_series else None
        if traced is None:
            by_series = False
            traced = recorder.by_reverse_mode(inputs)
        if traced.finite:
            break
    assert traced is not None
    return traced


def _is_plain(program: tree.Module) -> bool:
    """Whether the derivatives of a program are those of what it computes: there is nothing detached, and no
    derivative that is written by hand."""
    calls = (node for node in tree.everything(program) if isinstance(node, tree.Call))
    return not any(call.name in scope.DETACH for call in calls) and not scope.hand_written(program)


def _points(
    program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], fixed: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Values for the names of a formula, but for those that are put in as `fixed` numbers."""
    given = {*bindings, *wrt}
    reads = [n for n, r in scope.outer_reads(program).items() if n in given or not _has_value(n, r)]
    names = [n for n in reads if n not in fixed]
    for scale in _SCALES:
        yield {n: bindings[n] if n in bindings else _example((), i, scale) for i, n in enumerate(names)}


def _has_value(name: str, read: scope.Read) -> bool:
    return name in scope.CONSTANTS or read.maybe_assigned


def _example(shape: tuple[int, ...], i: int, scale: float) -> Any:
    """The value of the ith name without one."""
    value = scale * (1.0 + i * _STEP)
    if not shape:
        return value
    xp = arrays.numpy_namespace()
    return xp.reshape(value + _STEP * xp.arange(math.prod(shape)), shape)


class _Recorder:
    """Records the value of a program, where the `fixed` numbers stand for their names, and its derivatives by `wrt`."""

    def __init__(self, program: tree.Module, fixed: Mapping[str, Any], wrt: Sequence[str], order: int) -> None:
        self.program = program
        self.fixed = fixed
        self.wrt = wrt
        self.by = frozenset(wrt)
        self.order = order

    def by_series(self, inputs: Mapping[str, Any]) -> _Traced | None:
        """By numbers: in a formula for each derivative what a person would collect is collected already. None where
        something has no series, or is not smooth everywhere."""
        try:
            value = optimise(self._recorded(inputs, lambda **given: [self._scalar(given)]).program)
            with arrays.quiet():
                found = [*partials(value, inputs, self.wrt, self.order)]
        except NotImplementedError:
            return None
        return _Traced(value, [p.program for p in found], all(assume(isfinite(p.value)) for p in found))

    def by_reverse_mode(self, inputs: Mapping[str, Any]) -> _Traced:
        def run(**given: Any) -> list[Any]:
            leaves = {n: Tensor(v).requires_grad_(n in self.by) for n, v in given.items()}
            with enable_grad():
                value = self._scalar(leaves)
                return [value, *_derivatives(value, [leaves[n] for n in self.wrt], self.order)]

        traced = self._recorded(inputs, run)
        value, *found = separated(optimise(traced.program))
        return _Traced(value, found, all(assume(isfinite(v)) for v in traced.values))

    def _recorded(self, inputs: Mapping[str, Any], run: Callable[..., Sequence[Any]]) -> RecordedRun:
        try:
            with arrays.quiet(), pointing_into(self.program.source, self.program.body[-1].span):
                return record(run, inputs)
        except NotRecordableError as error:
            error.message = "there is no single formula: what is computed here depends on the numbers"
            error.hint = (
                "where(condition, a, b) chooses inside a formula; a name that counts something needs a value, as in n=3"
            )
            raise
        except ShapeError as error:
            free = [n for n in inputs if n not in self.by or not arrays.shape(inputs[n])]
            if free:
                error.hint = f"'{free[0]}' stands for a number; a tensor gives it a shape, as in {free[0]}=[1,2]"
            raise

    def _scalar(self, leaves: Mapping[str, Any]) -> Any:
        value = _value(self.program, {**leaves, **self.fixed})
        if arrays.shape(value):
            raise DifferentiationError(
                f"a formula is the derivative of a scalar, and the value has shape {list(arrays.shape(value))}",
                hint="sum(…) of it is a scalar",
            )
        return value


def _value(program: tree.Module, values: Mapping[str, Any]) -> Any:
    value = evaluate(program, values, rewrite=False).value
    return value if arrays.is_floating(constant(value)) else cast(value, "float64")


def _derivatives(value: Any, leaves: Sequence[Tensor], order: int) -> list[Any]:
    """By repeated reverse mode, so that every derivative is a formula of those below it."""
    # The derivatives of an order, each with the place of the last leaf that it is by.
    found = [(value, 0)]
    for _ in range(order):
        found = [
            (derivative, place)
            for below, last in found
            for place, derivative in enumerate(_differentiated(below, leaves[last:]), last)
        ]
    return [derivative for derivative, _ in found]


def _differentiated(value: Any, leaves: Sequence[Tensor]) -> list[Any]:
    shape = arrays.shape(value)
    differentiate = jacobians if shape else gradients
    found = differentiate(value, leaves, create_graph=True)
    return [arrays.zeros(shape + leaf.shape, leaf.dtype) if f is None else f for f, leaf in zip(found, leaves)]
