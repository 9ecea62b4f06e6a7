"""A program, or a function of Python's, that is run many times: from recordings, where it can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from warnings import warn

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import digits_left, loss_text
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import (
    Derivatives,
    derivatives,
    first_derivatives,
    note_kinks,
    watched_derivatives,
    weighted,
)
from gradcli.calculus.jacobians import jacobians_by_either_mode
from gradcli.errors import (
    AccuracyWarning,
    BindingError,
    DifferentiationError,
    expect,
    flag,
    pointing_into,
)
from gradcli.kinds.switching import EQUALITIES, Switching, watching
from gradcli.primitives.axes import whole
from gradcli.primitives.bind import concrete
from gradcli.primitives.comparisons import isfinite
from gradcli.primitives.operators import operand
from gradcli.run import converted
from gradcli.run.recordings import Recordings, Wanted, abstract, seen_as
from gradcli.run.scalar_functions import ScalarFunctions
from gradcli.run.trace import Outcome

if TYPE_CHECKING:
    from gradcli.run.callables import Computation
    from gradcli.run.row_gradients import RowGradients


class Compiled:
    """A computation, which a program or a function of Python's says.

    Its inputs are Python numbers, arrays, nested lists or Tensors; results come back as numbers
    and arrays, or as Tensors, with their graph, where an input is a Tensor.

    When it is called again with inputs of the same shapes and dtypes, its value and gradients come
    from a recording, unless what it does depends on their numbers.
    """

    def __init__(
        self,
        computation: Computation,
        inputs: tuple[str, ...],
        accepted: Iterable[str],
        max_steps: int,
        max_elements: int,
        masks: frozenset[str] = frozenset(),
    ) -> None:
        self._computation = computation
        self.inputs = inputs
        self._accepted = frozenset(accepted)
        # The inputs that may be truth values, by which elements are taken.
        self._masks = masks
        self._limits = max_steps, max_elements
        self._recordings = Recordings(computation)
        self._scalar = ScalarFunctions(computation, self._limits)
        self._rows: RowGradients | None = None

    def _evaluated(self, bindings: Mapping[str, Any]) -> Any:
        """The value for inputs that are arrays or Tensors."""
        raise NotImplementedError

    def _unknown(self, name: str) -> BindingError:
        """The error that it has no input of this name."""
        raise NotImplementedError

    def _expect_all(self, names: Collection[str]) -> None:
        """Raise BindingError where it needs more inputs than these."""
        raise NotImplementedError

    def _called(self, values: dict[str, Any]) -> Any:
        """The value, the inputs given by name."""
        found = self._scalar.value_and_grad(values, ())
        if found is not None:
            return found[0]
        seen = seen_as(values, ())
        with limits.within(*self._limits):
            outcome = self._recordings.again(seen, values)
            if outcome is not None:
                return converted.plain(outcome.value, {})
            if any(isinstance(v, Tensor) for v in values.values()):
                return self._of_tensors(values)
            bindings = self._bindings(values)
            outcome = self._recorded(bindings, Wanted(()), seen=_seen_by(seen, values, bindings))
            if outcome is None:
                return self._eager_value(bindings)
            self._scalar.prepare(tuple(values), (), values)
            return converted.plain(outcome.value, {})

    def _eager_value(self, bindings: Mapping[str, Any]) -> Any:
        """The value for inputs none of which is a tensor."""
        return converted.plain(self._run(bindings), bindings)

    def _of_tensors(self, values: Mapping[str, Any]) -> Any:
        """The value with its graph, for inputs some of which are tensors."""
        return self._run(self._bindings(values))

    def value_and_grad(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        grad_output: Any = None,
        *,
        rows: bool | Sequence[str] = False,
    ) -> tuple[Any, dict[str, Any]]:
        """The value, and its gradient by each name in `wrt` (all inputs, where that is None).

        `grad_output` is the cotangent of a value that is no scalar. A gradient is None where the
        value does not depend on the input. Raises DifferentiationError for a value that is no
        scalar without `grad_output`.

        With `rows=True` each row of the inputs is computed by itself: inputs with axes have a row for each index of the
        first, and numbers are the same for all of them. `rows=["x", "q"]` says which inputs have rows, where others are
        arrays that all rows share. The value has shape [n, …], and a gradient [n, …] too: that of each row, by shared
        inputs as well, and its Jacobian where the value of a row is no scalar. A row takes its own course through
        conditions and loops; where its value does not depend on an input and others do, the gradient is nan. Limits hold
        for each row. Raises ShapeError where the numbers of rows differ, and the error of the first row that has one.
        """
        if rows is not False:
            return self._of_rows(values, wrt, grad_output, rows)
        if wrt is not None and type(wrt) not in (list, tuple):
            # An iterator could be read only once.
            wrt = converted.listed(wrt)
        seen = None
        if grad_output is None:
            found = self._scalar.value_and_grad(values, wrt)
            if found is not None:
                return found
            seen = seen_as(values, wrt)
        with limits.within(*self._limits):
            outcome = self._recordings.again(seen, values)
            if outcome is not None:
                return converted.plain(outcome.value, {}), outcome.derivatives
            bindings, names = self._leaves(values, wrt)
            outcome = self._recorded(bindings, Wanted(tuple(names)), grad_output, _seen_by(seen, values, bindings))
            if outcome is not None:
                if grad_output is None:
                    self._scalar.prepare(tuple(values), tuple(names), values)
                return converted.plain(outcome.value, {}), outcome.derivatives
            return self._eager_value_and_grad(values, wrt, grad_output)

    def _of_rows(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None, grad_output: Any, rows: bool | Sequence[str]
    ) -> tuple[Any, dict[str, Any]]:
        # Most programs do without.
        from gradcli.run import row_gradients

        row_gradients.check(rows, grad_output)
        for name in self._masks & values.keys():
            if _truths(values[name]):
                raise BindingError(
                    f"'{name}' takes elements by truth values, which rows cannot", hint="where(m, x, 0) chooses by them"
                )
        if self._rows is None:
            self._rows = row_gradients.RowGradients(self._computation, self._limits)
        bindings, names = self._leaves(values, wrt)
        return self._rows.value_and_grad(bindings, names, rows)

    def compiled(self, names: Sequence[str], wrt: Sequence[str] | None = None) -> Callable[..., Any]:
        """A function of the inputs `names`, by position, that gives `(value, gradients)`: the
        gradients by each of `wrt` (all of `names`, where that is None), as a tuple.

        Raises BindingError where `names` are not what the program reads, and NotRecordableError
        where what it does depends on the numbers: then there is nothing to compile.
        """
        names = converted.listed(names)
        leaves = names if wrt is None else converted.listed(wrt)
        self._leaves(dict.fromkeys(names, 1.0), leaves)
        self._expect_all(frozenset(names))

        def general(*values: Any) -> Any:
            if len(values) != len(names):
                raise BindingError(f"{len(values)} values do not fit the inputs {', '.join(names)}")
            value, found = self.value_and_grad(dict(zip(names, values)), leaves)
            return value, tuple(found[n] for n in leaves)

        others: list[Callable[..., Any]] = []

        def refused(*values: Any) -> Any:
            if others:
                return others[0](*values)
            result = general(*values)
            if all(type(v) is float for v in values):
                given = dict(zip(names, values))
                others.append(self._scalar.version(given, leaves, raised=general, refused=general) or general)
            return result

        some = dict.fromkeys(names, abstract(0.0))
        return self._scalar.made(some, leaves, raised=general, refused=refused) or general

    def _recorded(
        self, bindings: Mapping[str, Any], wanted: Wanted, grad_output: Any = None, seen: Any = None
    ) -> Outcome | None:
        """The outcome from a recording; None where there is none, or none for these inputs."""
        if isinstance(grad_output, Tensor) or any(isinstance(b, Tensor) for b in bindings.values()):
            return None
        if self._masks and any(converted.is_truths(bindings[name]) for name in self._masks & bindings.keys()):
            return None
        cotangent = None if grad_output is None else operand(grad_output)
        with arrays.using_dtype(converted.dtype(bindings)):
            return self._recordings.run(bindings, wanted, cotangent, seen)

    def _eager_value_and_grad(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None, grad_output: Any
    ) -> tuple[Any, dict[str, Any]]:
        switching = Switching(EQUALITIES)
        with watching(switching):
            leaves, value = self._differentiable(values, wrt)
            note_kinks(value)
        with pointing_into(self._computation.source):
            found: Mapping[str, Any] = dict(
                zip(leaves, gradients(value, list(leaves.values()), grad_output, retain_graph=False))
            )
            if switching:
                found = self._settled(values, leaves, value, found, grad_output)
        return converted.plain(value, leaves), converted.plain_by_name(found, leaves)

    def _settled(
        self,
        values: Mapping[str, Any],
        leaves: Mapping[str, Tensor],
        value: Any,
        found: Mapping[str, Any],
        grad_output: Any = None,
    ) -> Mapping[str, Any]:
        """The derivatives where those that were `found` are of one branch of an equality, or nan at a kink."""
        bindings = self._bindings(values)

        def function(given: Mapping[str, Any]) -> Any:
            return weighted(self._run({**bindings, **given}), grad_output)

        with enable_grad():
            points = {name: concrete(leaf) for name, leaf in leaves.items()}
            return first_derivatives(function, points, weighted(value, grad_output), found)

    def jacobian(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> dict[str, Any]:
        """The Jacobian by each input, of shape value.shape + input.shape; None as in `value_and_grad`."""
        with limits.within(*self._limits):
            bindings, names = self._leaves(values, wrt)
            outcome = self._recorded(bindings, Wanted(tuple(names), "jacobians"))
            if outcome is not None:
                return outcome.derivatives
            switching = Switching(EQUALITIES)
            with watching(switching):
                leaves, value = self._differentiable(values, wrt)
                note_kinks(value)
            with pointing_into(self._computation.source):
                found = jacobians_by_either_mode(lambda given: self._run({**bindings, **given}), leaves, value)
                if switching:
                    found = {**self._settled(values, leaves, value, found)}
            return converted.plain_by_name(found, leaves)

    def hessian(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, *, sparse: bool = False
    ) -> dict[str, Any]:
        """The second derivatives of a scalar value, keyed `"x,x"`, `"x,q"`, …; each mixed one once.

        Their shape is the shapes of both inputs joined; None where the value does not depend on
        an input. With `sparse` they are `Coordinates` of matrices, with a row for each element of
        the first input and a column for each of the second: no dense matrix is made on the way.

        Raises DifferentiationError for a value that is no scalar; with `sparse` NotRecordableError
        where what the program does depends on the numbers, and LimitError where most second
        derivatives are there.
        """
        with limits.within(*self._limits):
            bindings, names = self._leaves(values, wrt)
            if not names:
                return {}
            outcome = self._recorded(bindings, Wanted(tuple(names), "sparse" if flag(sparse, "sparse") else "hessian"))
            if outcome is not None and (sparse or _is_finite(outcome)):
                return outcome.derivatives
            if sparse:
                return self._coordinates(bindings, names)
            found = self._eager_derivatives(bindings, names, 2).found
            return {key: d for key, d in found.items() if "," in key}

    def _coordinates(self, bindings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        # Most programs do without, and it takes milliseconds to load.
        from gradcli.run.hessians import program_hessian

        given = {name: concrete(value) for name, value in bindings.items()}
        with arrays.using_dtype(converted.dtype(given)):
            return program_hessian(self._computation, given, names).at(given)

    def derivatives(self, values: Mapping[str, Any], order: int, wrt: Sequence[str] | None = None) -> Any:
        """All derivatives of a scalar value up to `order`.

        With one scalar input the list [f, f', f'', …]; else a dict keyed by inputs joined with
        commas. Gives an AccuracyWarning where, from order 2 on, less than half of the digits of one are
        right. Raises DifferentiationError for a value that is no scalar.
        """
        order = whole(order, "the order of a derivative")
        if order < 0:
            raise DifferentiationError("the order of a derivative must not be negative")
        with limits.within(*self._limits):
            value, found, deviations = self._all_derivatives(values, wrt, order)
        left = digits_left(found, deviations, value)
        if left:
            warn(loss_text(left), AccuracyWarning, stacklevel=2)
        names = self._names(values, wrt)
        if len(names) == 1 and not arrays.shape(operand(values[names[0]])):
            return [value, *(0.0 if d is None else d for d in found.values())]
        return found

    def _all_derivatives(self, values: Mapping[str, Any], wrt: Sequence[str] | None, order: int) -> Derivatives:
        bindings, names = self._leaves(values, wrt)
        outcome = self._recorded(bindings, Wanted(tuple(names), "derivatives", order))
        if outcome is not None and _is_finite(outcome):
            return Derivatives(converted.plain(outcome.value, {}), outcome.derivatives, outcome.deviations)
        return self._eager_derivatives(bindings, names, order, watched=True)

    def _eager_derivatives(
        self, bindings: Mapping[str, Any], names: Sequence[str], order: int, *, watched: bool = False
    ) -> Derivatives:
        leaves = {n: concrete(bindings[n]) for n in names}
        with enable_grad(), pointing_into(self._computation.source):

            def function(given: Mapping[str, Any]) -> Any:
                return self._run({**bindings, **given})

            made = watched_derivatives(function, leaves, order) if watched else derivatives(function, leaves, order)
        result = Derivatives(*made)
        return result._replace(
            value=converted.plain(result.value, bindings),
            found=converted.plain_by_name(result.found, bindings),
        )

    def _differentiable(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[dict[str, Tensor], Any]:
        """The leaves to differentiate by, and the value with its graph."""
        bindings, names = self._leaves(values, wrt)
        leaves = {n: converted.leaf(bindings[n]) for n in names}
        with enable_grad():
            return leaves, self._run(bindings | leaves)

    def _leaves(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[dict[str, Any], list[str]]:
        """The inputs as arrays, and the names to differentiate by."""
        names = self._names(values, wrt)
        return self._bindings(values), names

    def _names(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> list[str]:
        """The inputs to differentiate by, all of them where `wrt` is None."""
        expect(values, Mapping, "the values of a program are a mapping of names to numbers, arrays or tensors")
        if wrt is None:
            names = [n for n in values if n in self._accepted and not (n in self._masks and _truths(values[n]))]
        else:
            names = list(converted.listed(wrt))
        missing = [n for n in names if n not in values]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        return names

    def _run(self, bindings: Mapping[str, Any]) -> Any:
        namespace = arrays.foreign_namespace(concrete(b) for b in bindings.values())
        with arrays.using_dtype(converted.dtype(bindings)), arrays.using_namespace(namespace):
            return self._evaluated(bindings)

    def _expect_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._accepted:
                expect(name, str, "the name of an input is a text")
                raise self._unknown(name)

    def _bindings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        self._expect_known(values)
        bindings = {name: converted.value(value, truths=name in self._masks) for name, value in values.items()}
        foreign = arrays.foreign_namespace(map(concrete, bindings.values()))
        if foreign is None:
            return bindings
        return {name: converted.beside(value, foreign) for name, value in bindings.items()}


def _is_finite(outcome: Outcome) -> bool:
    """Whether all derivatives are: others may have a value that evaluation in another way finds."""
    return all(d is None or arrays.every(isfinite(d)) for d in outcome.derivatives.values())


def _truths(value: Any) -> bool:
    return converted.is_truths(converted.value(value, truths=True))


def _seen_by(seen: Any, values: Mapping[str, Any], bindings: Mapping[str, Any]) -> Any:
    """`seen`, where the values are bound as they are given."""
    return seen if all(bindings[n] is v for n, v in values.items()) else None
