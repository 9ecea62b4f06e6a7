"""Repeated evaluation of a program or Python function, from recordings where its control flow permits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from warnings import warn

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import all_finite, gradients
from gradcli.calculus.first_orders import Derivatives, Function, first_derivatives, note_kinks
from gradcli.errors import (
    AccuracyWarning,
    BindingError,
    DifferentiationError,
    GradcliError,
    NotRecordableError,
    as_bool,
    expect,
    locating,
)
from gradcli.evaluation import python_values
from gradcli.evaluation.recording_cache import Recordings, WantedDerivatives, input_key
from gradcli.kinds.branch_points import EQUALITIES, BranchPointWatcher, watching
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand

if TYPE_CHECKING:
    from gradcli.compiled.row_gradients import RowGradients
    from gradcli.evaluation.callables import Computation
    from gradcli.evaluation.derivative_traces import Outcome
    from gradcli.program.ir import Atom, Executable


class Compiled:
    """Base class of compiled programs and compiled Python functions.

    Inputs are Python numbers, arrays, nested lists or Tensors; results are numbers and arrays, or Tensors with their
    graph where an input is a Tensor.

    Further calls with inputs of the same shapes and dtypes run a recording, unless the control flow depends on the
    numbers.
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
        # The inputs that may be boolean masks.
        self._masks = masks
        self._limits = max_steps, max_elements
        self._recordings = Recordings(computation)
        self._scalar = ScalarFunctions(computation, self._limits)
        self._rows: RowGradients | None = None

    def _evaluated(self, bindings: Mapping[str, Any]) -> Any:
        """Evaluate the computation for arrays or Tensors."""
        raise NotImplementedError

    def _unknown(self, name: str) -> BindingError:
        """The error for a name that is not an input."""
        raise NotImplementedError

    def _expect_all(self, names: Collection[str]) -> None:
        """Raise BindingError where a required input is not among `names`."""
        raise NotImplementedError

    def _called(self, values: dict[str, Any]) -> Any:
        """Return the value for inputs by name."""
        found = self._scalar.value_and_grad(values, ())
        if found:
            return found[0]
        seen = input_key(values, ())
        with limits.within(*self._limits):
            outcome = self._recordings.replay(seen, values)
            if outcome is not None:
                return python_values.plain(outcome.value, {})
            if any(isinstance(v, Tensor) for v in values.values()):
                return self._of_tensors(values)
            bindings = self._bindings(values)
            outcome = self._recorded(bindings, WantedDerivatives(()), seen=_key_if_unconverted(seen, values, bindings))
            if outcome is None:
                return self._eager_value(bindings)
            self._scalar.prepare(tuple(values), (), values)
            return python_values.plain(outcome.value, {})

    def _eager_value(self, bindings: Mapping[str, Any]) -> Any:
        """Evaluate without a recording, for inputs of which none is a tensor."""
        return python_values.plain(self._run(bindings), bindings)

    def _of_tensors(self, values: Mapping[str, Any]) -> Any:
        """Return the value with its graph, for inputs of which some are tensors."""
        return self._run(self._bindings(values))

    def value_and_grad(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        grad_output: Any = None,
        *,
        rows: bool | Sequence[str] = False,
    ) -> tuple[Any, dict[str, Any]]:
        """Return the value, and its gradient by each name in `wrt` (None: all inputs).

        `grad_output` is the cotangent of a non-scalar value. A gradient is None where the value does not depend on the
        input. Raises DifferentiationError for a non-scalar value without `grad_output`.

        With `rows=True` each row is computed on its own: inputs with axes have one row for each index of the first
        axis, and scalars are shared by all rows. `rows=["x", "q"]` names the inputs that have rows; all others are
        shared arrays. The value has shape [n, …], and so has each gradient, also by shared inputs: the gradient of each
        row, or its Jacobian where the value of a row is not scalar. Each row takes its own path through conditions and
        loops; where the value of a row does not depend on an input and that of other rows does, the gradient is nan.
        Limits hold for each row. Raises ShapeError where the numbers of rows differ, and the error of the first row
        that fails.
        """
        found: Any = None
        if wrt is None and grad_output is None and rows is False and type(values) is dict:
            # Most calls, without the time of a further call, which is a tenth of that of a short program.
            run = self._scalar.functions.get(tuple(values))
            if run is not None:
                found = run(*values.values())
        else:
            if rows is not False:
                return self._of_rows(values, wrt, grad_output, rows)
            if wrt is not None and type(wrt) not in (list, tuple):
                # `wrt` is read several times, which an iterator does not permit.
                wrt = python_values.names_tuple(wrt)
            if grad_output is None:
                found = self._scalar.value_and_grad(values, wrt)
        if found:
            return found  # type: ignore[no-any-return]
        seen = input_key(values, wrt) if grad_output is None else None
        with limits.within(*self._limits):
            outcome = self._recordings.replay(seen, values)
            if outcome is not None:
                return python_values.plain(outcome.value, {}), outcome.derivatives
            bindings, names = self._leaves(values, wrt)
            outcome = self._recorded(
                bindings, WantedDerivatives(tuple(names)), grad_output, _key_if_unconverted(seen, values, bindings)
            )
            if outcome is not None:
                if grad_output is None:
                    self._scalar.prepare(tuple(values), tuple(names), values)
                return python_values.plain(outcome.value, {}), outcome.derivatives
            return self._eager_value_and_grad(values, wrt, grad_output)

    def _of_rows(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None, grad_output: Any, rows: bool | Sequence[str]
    ) -> tuple[Any, dict[str, Any]]:
        # Loaded on demand: most programs have no rows.
        from gradcli.compiled import row_gradients

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
        """Return a function of the inputs `names`, by position, that returns `(value, gradients)`.

        `gradients` is a tuple: one for each of `wrt` (None: all of `names`). Raises BindingError where `names` are not
        the inputs of the program, and NotRecordableError where its control flow depends on the numbers, so that it
        cannot be compiled.
        """
        names = python_values.names_tuple(names)
        leaves = names if wrt is None else python_values.names_tuple(wrt)
        general = self._by_position(names, leaves)
        others: list[Callable[..., Any]] = []

        def refused(*values: Any) -> Any:
            if others:
                return others[0](*values)
            result = general(*values)
            if all(type(v) is float for v in values):
                given = dict(zip(names, values))
                others.append(self._scalar.generate_or_none(given, leaves, raised=general, refused=general) or general)
            return result

        return self._scalar.generate(_any_numbers(names), leaves, raised=general, refused=refused) or general

    def _by_position(self, names: Sequence[str], leaves: Sequence[str]) -> Callable[..., Any]:
        """Return `value_and_grad` as a function of the inputs `names`, by position. Raises BindingError where they are
        not the inputs of the program."""
        self._leaves(dict.fromkeys(names, 1.0), leaves)
        self._expect_all(frozenset(names))

        def called(*values: Any) -> Any:
            if len(values) != len(names):
                raise BindingError(f"{len(values)} values do not fit the inputs {', '.join(names)}")
            value, found = self.value_and_grad(dict(zip(names, values)), leaves)
            return value, tuple(found[n] for n in leaves)

        return called

    def _recorded(
        self, bindings: Mapping[str, Any], wanted: WantedDerivatives, grad_output: Any = None, seen: Any = None
    ) -> Outcome | None:
        """Return the outcome of a recording; None where no recording fits these inputs."""
        if isinstance(grad_output, Tensor) or any(isinstance(b, Tensor) for b in bindings.values()):
            return None
        if self._masks and any(
            python_values.is_boolean_array(bindings[name]) for name in self._masks & bindings.keys()
        ):
            return None
        cotangent = None if grad_output is None else operand(grad_output)
        with arrays.using_dtype(python_values.dtype(bindings)):
            return self._recordings.run(bindings, wanted, cotangent, seen)

    def _eager_value_and_grad(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None, grad_output: Any
    ) -> tuple[Any, dict[str, Any]]:
        def gradient(_function: Function, leaves: Mapping[str, Tensor], value: Any) -> Mapping[str, Any]:
            return dict(zip(leaves, gradients(value, list(leaves.values()), grad_output, retain_graph=False)))

        return self._eager_first_derivatives(*self._leaves(values, wrt), gradient, grad_output)

    def _eager_first_derivatives(
        self,
        bindings: Mapping[str, Any],
        names: Sequence[str],
        differentiate: Callable[[Function, Mapping[str, Tensor], Any], Mapping[str, Any]],
        weights: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Return the value and its derivatives, which `differentiate` computes from the function, its leaves and its
        value.

        Those that may be derivatives of a single branch of an equality, or the convention at a kink, are replaced by
        the true derivative, or nan where none exists.
        """

        def function(given: Mapping[str, Any]) -> Any:
            return self._run({**bindings, **given})

        leaves = {n: python_values.leaf(bindings[n]) for n in names}
        switching = BranchPointWatcher(EQUALITIES)
        with watching(switching), enable_grad():
            value = function(leaves)
            note_kinks(value)
        with locating(self._computation.source):
            found = differentiate(function, leaves, value)
            if switching:
                points = {name: concrete(leaf) for name, leaf in leaves.items()}
                with enable_grad():
                    found = first_derivatives(function, points, value, found, weights)
        return python_values.plain(value, leaves), python_values.plain_by_name(found, leaves)

    def jacobian(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the Jacobian by each input, of shape value.shape + input.shape; None where the value does not depend
        on it."""
        with limits.within(*self._limits):
            bindings, names = self._leaves(values, wrt)
            outcome = self._recorded(bindings, WantedDerivatives(tuple(names), "jacobians"))
            if outcome is not None:
                return outcome.derivatives
            # Loaded on demand, as by all methods but the usual ones: the first gradient is to come soon.
            from gradcli.calculus.jacobians import jacobians_by_either_mode

            return self._eager_first_derivatives(bindings, names, jacobians_by_either_mode)[1]

    def hessian(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, *, sparse: bool = False
    ) -> dict[str, Any]:
        """Return the second derivatives of a scalar value, keyed `"x,x"`, `"x,q"`, …; each mixed one appears once. Those
        of a real value by a complex input are by its parts, as `"real(z),imag(z)"`.

        Their shape is the concatenation of both input shapes; None where the value does not depend on an input. With
        `sparse` they are `Coordinates` of matrices, with a row for each element of the first input and a column for
        each of the second; no dense matrix is formed.

        Raises DifferentiationError for a non-scalar value. With `sparse`, raises NotRecordableError where control flow
        depends on the numbers, and LimitError where the matrix is mostly nonzero.
        """
        with limits.within(*self._limits):
            bindings, names = self._leaves(values, wrt)
            if not names:
                return {}
            if _by_complex_inputs(bindings, names):
                if sparse:
                    raise DifferentiationError("coordinates are of derivatives by real inputs, and one is complex")
                found = self._complex_derivatives(bindings, names, 2).found
                return {key: d for key, d in found.items() if "," in key}
            outcome = self._recorded(
                bindings, WantedDerivatives(tuple(names), "sparse" if as_bool(sparse, "sparse") else "hessian")
            )
            # Eager evaluation may find a finite value where a recording does not.
            if outcome is not None and (sparse or all_finite(outcome.derivatives.values())):
                return outcome.derivatives
            if sparse:
                return self._coordinates(bindings, names)
            found = self._eager_derivatives(bindings, names, 2).found
            return {key: d for key, d in found.items() if "," in key}

    def _coordinates(self, bindings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        # Loaded on demand: it takes milliseconds, and few programs need it.
        from gradcli.evaluation.hessians import program_hessian

        given = {name: concrete(value) for name, value in bindings.items()}
        with arrays.using_dtype(python_values.dtype(given)):
            return program_hessian(self._computation, given, names).at(given)

    def derivatives(self, values: Mapping[str, Any], order: int, wrt: Sequence[str] | None = None) -> Any:
        """Return all derivatives of a scalar value up to `order`.

        For a single scalar input they are the list [f, f', f'', …]; else a dict keyed by inputs joined with commas. By
        the parts of complex inputs they are a dict too: those of order 2 and more of a real value.
        Issues an AccuracyWarning where a derivative of order 2 or higher has lost more than half of its digits. Raises
        DifferentiationError for a non-scalar value.
        """
        from gradcli.calculus.accuracy import digits_left, loss_text

        order = integer(order, "the order of a derivative")
        if order < 0:
            raise DifferentiationError("the order of a derivative must not be negative")
        with limits.within(*self._limits):
            value, found, deviations = self._all_derivatives(values, wrt, order)
        left = digits_left(found, deviations, value, {name: operand(given) for name, given in values.items()})
        if left:
            warn(loss_text(left), AccuracyWarning, stacklevel=2)
        names = self._names(values, wrt)
        if len(names) == 1 and len(found) == order and not arrays.shape(operand(values[names[0]])):
            return [value, *(0.0 if d is None else d for d in found.values())]
        return found

    def _all_derivatives(self, values: Mapping[str, Any], wrt: Sequence[str] | None, order: int) -> Derivatives:
        bindings, names = self._leaves(values, wrt)
        if order > 1 and _by_complex_inputs(bindings, names):
            return self._complex_derivatives(bindings, names, order)
        outcome = self._recorded(bindings, WantedDerivatives(tuple(names), "derivatives", order))
        if outcome is not None and all_finite(outcome.derivatives.values()):
            return Derivatives(python_values.plain(outcome.value, {}), outcome.derivatives, outcome.deviations)
        return self._eager_derivatives(bindings, names, order, watched=True)

    def _eager_derivatives(
        self, bindings: Mapping[str, Any], names: Sequence[str], order: int, *, watched: bool = False
    ) -> Derivatives:
        from gradcli.calculus.higher_orders import derivatives, derivatives_with_shadow

        leaves = {n: concrete(bindings[n]) for n in names}
        with enable_grad(), locating(self._computation.source):

            def function(given: Mapping[str, Any]) -> Any:
                return self._run({**bindings, **given})

            try:
                made = (
                    derivatives_with_shadow(function, leaves, order)
                    if watched
                    else derivatives(function, leaves, order)
                )
            except DifferentiationError:
                if not arrays.is_complex(concrete(self._run(bindings))):
                    raise
                return self._complex_derivatives(bindings, names, order)
        return _in_python(Derivatives(*made), bindings)

    def _complex_derivatives(self, bindings: Mapping[str, Any], names: Sequence[str], order: int) -> Derivatives:
        """The derivatives of a complex value, or by inputs of which some are complex; those of order 2 and more of a real
        value are by `real(z)` and `imag(z)`. Raises DifferentiationError where a complex value is not known to be
        holomorphic."""
        from gradcli.evaluation.row_evaluation import differentiated

        with locating(self._computation.source):
            inputs = {name: concrete(binding) for name, binding in bindings.items()}
            return _in_python(differentiated(self._run, inputs, names, order, by_parts=True), bindings)

    def _leaves(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[dict[str, Any], list[str]]:
        """Return the inputs as arrays, and the names to differentiate by."""
        names = self._names(values, wrt)
        return self._bindings(values), names

    def _names(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> list[str]:
        """Return the names to differentiate by; by default all inputs except boolean masks."""
        expect(values, Mapping, "the values of a program are a mapping of names to numbers, arrays or tensors")
        if wrt is None:
            names = [n for n in values if n in self._accepted and not (n in self._masks and _truths(values[n]))]
        else:
            names = list(python_values.names_tuple(wrt))
        missing = [n for n in names if n not in values]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        return names

    def _run(self, bindings: Mapping[str, Any]) -> Any:
        namespace = arrays.foreign_namespace(concrete(b) for b in bindings.values())
        with arrays.using_dtype(python_values.dtype(bindings)), arrays.using_namespace(namespace):
            return self._evaluated(bindings)

    def _expect_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._accepted:
                expect(name, str, "the name of an input is a text")
                raise self._unknown(name)

    def _bindings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        self._expect_known(values)
        bindings = {name: python_values.value(value, truths=name in self._masks) for name, value in values.items()}
        foreign = arrays.foreign_namespace(map(concrete, bindings.values()))
        if foreign is None:
            return bindings
        return {name: python_values.in_namespace(value, foreign) for name, value in bindings.items()}


def _truths(value: Any) -> bool:
    return python_values.is_boolean_array(python_values.value(value, truths=True))


def _key_if_unconverted(seen: Any, values: Mapping[str, Any], bindings: Mapping[str, Any]) -> Any:
    """Return `seen` where every input is bound unconverted, else None."""
    return seen if all(bindings[n] is v for n, v in values.items()) else None


# --- generated functions of floats

# Bounds on the number of functions, and of versions of each, under different guards.
_MOST = 32
_MOST_VERSIONS = 4


class ScalarFunctions:
    """Functions of floats that return the value and gradients of a computation, within its limits."""

    def __init__(self, computation: Computation, most: tuple[int, int]) -> None:
        self._computation = computation
        self._limits = most
        # By `_key`.
        self.functions: dict[Any, Callable[..., Any]] = {}
        self._versions: Counter[Any] = Counter()

    def generate(
        self,
        inputs: Mapping[str, Any],
        wrt: Sequence[str],
        *,
        raised: Callable[..., Any],
        refused: Callable[..., Any],
        by_name: bool = False,
    ) -> Callable[..., Any] | None:
        """Record the computation and make a function of floats of it; None where a result is not a number.

        The function is generated for a program on scalars; with tensors within, as around loops, it runs the recording.
        It returns the value and a tuple of gradients, or with `by_name` a dict of them. It calls `raised` where that
        code raises, and `refused` if an input is not a float or a guard does not hold. Raises NotRecordableError where
        control flow depends on the numbers.
        """
        # Loaded on demand: a program that is called once is not recorded.
        from gradcli.evaluation.recordings import recording
        from gradcli.executors import scalars

        try:
            with limits.within(*self._limits), limits.optional_budget(), arrays.using_dtype("float64"):
                made = recording(self._computation, inputs, wrt)
        except NotRecordableError:
            raise
        except GradcliError:
            return None
        positions = made.trace.positions.values()
        if not scalars.fits(made.trace.program):
            if not all(map(_is_number, (*made.trace.program.inputs, *made.trace.program.outputs))):
                return None
            names = wrt if by_name else None
            return _replaying(made.run, [*positions], names, self._limits, raised=raised, refused=refused)
        keys = {f"key{i}": name for i, name in enumerate(wrt)} if by_name else {}

        def result(outputs: Sequence[str]) -> str:
            found = ("None" if i is None else outputs[i] for i in positions)
            if by_name:
                return f"({outputs[0]}, {{{', '.join(f'{key}: {text}' for key, text in zip(keys, found))}}})"
            return f"({outputs[0]}, ({''.join(f'{text}, ' for text in found)}))"

        return scalars.function(made.trace.program, result, raised=raised, refused=refused, known=keys)

    def generate_or_none(
        self, inputs: Mapping[str, Any], wrt: Sequence[str], **options: Any
    ) -> Callable[..., Any] | None:
        """Like `generate`, but None also where the computation cannot be recorded."""
        with suppress(NotRecordableError):
            return self.generate(inputs, wrt, **options)
        return None

    def value_and_grad(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None
    ) -> tuple[Any, dict[str, Any]] | tuple[()] | None:
        """Return the value and the gradients; nothing where no function for these inputs exists or it has no result."""
        if type(values) is not dict or not self.functions:
            return None
        names = tuple(values)
        try:
            run = self.functions.get(names if wrt is None else _key(names, tuple(wrt)))
        except TypeError:
            # The key is unhashable because of an invalid name; a later step raises the error.
            return None
        return None if run is None else run(*values.values())

    def prepare(self, names: tuple[str, ...], wrt: tuple[str, ...], values: Mapping[str, Any]) -> None:
        """Generate a function for the next call with floats of these names, or another version where the existing one
        refuses `values`."""
        key = _key(names, wrt)
        if not all(type(v) is float for v in values.values()):
            return
        known = self.functions.get(key)
        if known is None and len(self.functions) < _MOST:
            self.functions[key] = self._first_version(values, wrt) or _no_result
        elif known is not None and self._versions[key] < _MOST_VERSIONS and known(*values.values()) is _REFUSED:
            self._versions[key] += 1
            version = self.generate_or_none(values, wrt, raised=_no_result, refused=known, by_name=True)
            self.functions[key] = version or known

    def _first_version(self, values: Mapping[str, Any], wrt: Sequence[str]) -> Callable[..., Any] | None:
        """A function for all numbers, or, where control flow depends on them, for numbers that take the execution path
        of `values`."""
        try:
            return self.generate(_any_numbers(values), wrt, raised=_no_result, refused=_refused, by_name=True)
        except NotRecordableError:
            return self.generate_or_none(values, wrt, raised=_no_result, refused=_refused, by_name=True)


def _any_numbers(names: Iterable[str]) -> dict[str, Any]:
    """Inputs that are numbers of which nothing is known."""
    from gradcli.evaluation.recordings import abstract

    return dict.fromkeys(names, abstract(0.0))


def _is_number(atom: Atom) -> bool:
    return not arrays.shape(atom) and arrays.dtype_name(atom) == "float64"


def _replaying(
    run: Executable,
    positions: Sequence[int | None],
    names: Sequence[str] | None,
    most: tuple[int, int],
    *,
    raised: Callable[..., Any],
    refused: Callable[..., Any],
) -> Callable[..., Any]:
    """The function of floats that runs a recording within limits, and returns the value and the outputs at `positions`,
    by name if there are `names`."""

    def program(*values: Any) -> Any:
        if not _FLOAT.issuperset(map(type, values)):
            return refused(*values)
        try:
            with limits.within(*most):
                outputs = run(values)
        except (GradcliError, MemoryError):
            return raised(*values)
        if outputs is None:
            return refused(*values)
        found = [None if i is None else outputs[i] for i in positions]
        return outputs[0], tuple(found) if names is None else dict(zip(names, found))

    return program


_FLOAT = frozenset({float})


def _key(names: tuple[str, ...], wrt: tuple[str, ...]) -> tuple[Any, ...]:
    """The key of a function: the names of its inputs, and of those to differentiate by where these are not all."""
    return names if wrt == names else (names, wrt)


_REFUSED = ()


def _no_result(*_values: Any) -> None:
    """Result of a function that raised: None."""


def _refused(*_values: Any) -> tuple[()]:
    """Result of a function whose guards do not hold."""
    return _REFUSED


def _by_complex_inputs(bindings: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(arrays.is_complex(concrete(bindings[name])) for name in names)


def _in_python(result: Derivatives, bindings: Mapping[str, Any]) -> Derivatives:
    """The value and the derivatives as what users get."""
    return result._replace(
        value=python_values.plain(result.value, bindings),
        found=python_values.plain_by_name(result.found, bindings),
    )
