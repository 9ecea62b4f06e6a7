"""Runs a program once: its value, the requested derivatives, and warnings about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.autograd.engine import observing
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import (
    BackendError,
    DifferentiationError,
    GradcliError,
    LimitError,
    NotRecordableError,
    UnknownNameError,
    UsageError,
    did_you_mean,
    locating,
)
from gradcli.evaluation.diagnose import RoundingErrorEstimate, Warning, Watch, all_finite, unused_parts
from gradcli.kinds.branch_points import BranchPointError, BranchPointWatcher, watching
from gradcli.language.interpreter import lost_digits
from gradcli.language.interpreter.run import Evaluation, evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.names.resolution import resolve
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import symmetric_parts
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import isnan, nowhere
from gradcli.primitives.entries.reductions import sum_
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.calculus.first_orders import Function
    from gradcli.evaluation.complex_results import ComplexValue
    from gradcli.evaluation.inner_derivative_accuracy import InnerDerivativeObserver

EXECUTORS = ("eager", "compiled")


class EvaluationRequest(NamedTuple):
    """A request for an evaluation.

    `bindings` are arrays by name, `wrt` names those to differentiate by. `executor` is one of EXECUTORS; None chooses a
    suitable one. With `sparse`, derivatives of order 2 are computed as coordinates; with `wirtinger`, the derivatives by
    complex inputs and by their conjugates.
    """

    program: Module
    bindings: Mapping[str, Any]
    wrt: Sequence[str] = ()
    gradient: bool = True
    grad_output: Any = None
    jacobian: bool = False
    order: int | None = None
    sparse: bool = False
    retain: Sequence[str] = ()
    nodes: bool = False
    rewrite: bool = True
    executor: str | None = None
    wirtinger: bool = False


# Returns what to compute. Where inputs depend on the working precision, each call has those of the current one.
RequestFactory = Callable[[], EvaluationRequest]

# The members of a result that hold numbers by name.
PARTS = ("grad", "derivatives", "jacobian", "retained")


class Result:
    """Results as NumPy arrays; None for what was not requested or does not exist."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.grad: dict[str, Any] | None = None
        self.derivatives: dict[str, Any] | None = None
        # About how many digits are right, for derivatives that lost more than half of them.
        self.digits_left: dict[str, int] = {}
        # By z and by conj(z), of complex inputs.
        self.wirtinger: dict[str, Any] | None = None
        self.coordinates: dict[str, Any] | None = None
        self.jacobian: dict[str, Any] | None = None
        self.retained: dict[str, Any] | None = None
        self.nodes: list[dict[str, Any]] | None = None
        self.rewritten: tuple[RewrittenExpression, ...] = ()
        # Numbers of right digits, see `gradcli.proofs.certify`.
        self.certified: dict[str, Any] | None = None
        self.warnings: list[Warning] = []
        self.finite = True


def run(request: EvaluationRequest) -> Result:
    """Evaluate and differentiate.

    Large arrays are computed by a recorded program where only a value and gradients are requested; everything else is
    evaluated eagerly.

    Raises what `evaluate` raises, NotRecordableError where the program cannot be recorded and `executor` requires it,
    DifferentiationError for a non-scalar value with neither Jacobian nor cotangent, UnknownNameError for an unknown
    intermediate in `retain`, and UsageError for derivatives of higher order with a cotangent.
    """
    if request.grad_output is not None and request.order is not None and request.order > 1:
        # The gradient and the higher derivatives would belong to different functions.
        raise UsageError(
            "a cotangent weights the gradient, and derivatives of higher order are those of the value itself",
            hint="multiply the value by the cotangent in the program, and sum it if that is no scalar",
        )
    result = _with_shortfalls(request) if resolve(request.program).calls_functionals else _result(request)
    _propose_complex_numbers(request.program, result)
    result.warnings[:0] = unused_parts(request.program)
    return result


# Functions that are nan where they would be complex.
_NAN_WHERE_COMPLEX = frozenset(
    ["sqrt", "log", "log2", "log10", "log1p", "asin", "acos", "acosh", "atanh", "power", "pow", "general_power"]
)


def _propose_complex_numbers(program: Module, result: Result) -> None:
    """Add to the warning about a nan outside the domain of a real function how its complex value is written."""
    for i, warning in enumerate(result.warnings):
        if warning.operation in _NAN_WHERE_COMPLEX and " gives nan" in warning.message:
            # Loaded on demand: few results are nan.
            from gradcli.language.suggestions.complex_operands import complex_operand

            written = complex_operand(program, warning.span)
            if written is not None:
                message = f"{warning.message}; write {written} for complex numbers"
                result.warnings[i] = warning._replace(message=message)


def _with_shortfalls(request: EvaluationRequest) -> Result:
    """The result, with warnings about integrals and the like that did not reach their tolerance."""
    # Loaded on demand: few programs call functionals.
    from gradcli.functionals import shortfalls

    last = request.program.body[-1].span
    with shortfalls.collecting() as found:
        result = _result(request)
    result.warnings += [
        Warning(s.code, "backward" if s.code == "nonsmooth" else "forward", s.operation, s.span or last, s.message)
        for s in found
    ]
    return result


def _result(request: EvaluationRequest) -> Result:
    if _is_worth_recording(request):
        compiled = _compiled(request)
        if compiled is not None:
            return compiled
    seen = _inner_derivative_observer(request)
    with locating(request.program.source, request.program.body[-1].span):
        watch = Watch(request.program)
        result = _watched(request, watch, seen)
        _diagnose(request, watch, seen, result)
        return result


def _watched(request: EvaluationRequest, watch: Watch, seen: InnerDerivativeObserver | None) -> Result:
    """The value and the derivatives, while it is noted what there may be to warn about."""
    with nullcontext() if seen is None else seen.watched():
        with symmetric_parts.telling(watch.see_asymmetry), lost_digits.telling(watch.see_lost_digits):
            result = _run(request, watch, None)
        _replace_derivatives_at_switches(request, watch, result)
    return result


def _diagnose(request: EvaluationRequest, watch: Watch, seen: InnerDerivativeObserver | None, result: Result) -> None:
    """Set the warnings of a result, and whether it is finite. Where numbers are not, the program runs again, so that
    those it makes of them are seen."""
    others = [*watch.asymmetric.values(), *watch.without_digits.values()]
    result.finite = all_finite(result.value, *_numbers(result))
    # If a higher-order derivative does not exist, the warning about the kink is sufficient.
    explained = result.finite or (watch.settled is False and _is_finite_to_order_1(result))
    if not explained:
        watch = Watch(request.program)
        try:
            with limits.optional_budget():
                _run(request, watch, watch.see_forward)
        except LimitError:
            # The result is available; failing to locate its non-finite numbers is not an error.
            watch.stopped = True
    result.warnings = watch.warnings(
        finite=explained,
        value_is_finite=all_finite(result.value),
        inputs_are_finite=explained or all_finite(*request.bindings.values()),
    )
    if not explained and not is_exact():
        result.warnings[:1] = _explained_by_rounding(request, watch, result.warnings[:1])
    if result.digits_left:
        watch = Watch(request.program)
        with suppress(LimitError), limits.optional_budget():
            _run(request, watch, None, inaccurate=True)
        result.warnings.append(watch.inaccurate(result.digits_left))
    elif seen is not None and seen.taken and result.finite:
        result.warnings += _losses_inside(request, seen)
    if (seen is None or not seen.taken) and result.finite and watch.rounding_estimate is not None:
        losses = _complex_losses if _may_be_complex(request) else _first_losses
        result.warnings += losses(request, watch.rounding_estimate, result)
    result.warnings += others


def _may_be_complex(request: EvaluationRequest) -> bool:
    return resolve(request.program).makes_complex or any(map(arrays.is_complex, request.bindings.values()))


def _has_complex(request: EvaluationRequest, result: Result) -> bool:
    """Return whether the value or an input is complex. Kinks are examined along real lines alone."""
    return arrays.is_complex(result.value) or any(map(arrays.is_complex, request.bindings.values()))


def _replace_derivatives_at_switches(request: EvaluationRequest, watch: Watch, result: Result) -> None:
    """Replace first derivatives at points where the program switches by those of the value there, and determine whether
    all of them exist."""
    if not all_finite(result.value) or _has_complex(request, result):
        return
    for part, weights in (("grad", request.grad_output), ("jacobian", None)):
        named = getattr(result, part)
        if not named or not (watch.nonsmooth or watch.ties or not all_finite(*named.values())):
            continue
        from gradcli.calculus.kinks import derivatives_at_switch

        function, leaves = _weighted(_again(request), weights), {name: request.bindings[name] for name in named}
        given = {name: None if d is None else arrays.like_library_of(d, leaves[name]) for name, d in named.items()}
        found, smooth = derivatives_at_switch(function, leaves, concrete(function({})), given, at_kink=False)
        setattr(result, part, {name: as_numpy(d) for name, d in found.items()})
        if any(found[name] is not d for name, d in given.items()):
            # The rounding-error estimate belongs to the branch that was taken.
            watch.rounding_estimate = None
        if smooth:
            watch.settled = watch.settled is not False
        elif watch.nonsmooth or watch.ties:
            watch.settled = False


def _weighted(function: Function, weights: Any) -> Function:
    """Weight the values of a function and sum them; without weights return the function itself."""
    return function if weights is None else lambda given: sum_(multiply(function(given), weights))


def _first_losses(
    request: EvaluationRequest, rounding_estimate: RoundingErrorEstimate, result: Result
) -> Sequence[Warning]:
    """Return warnings where the value or the gradient lost more than half of its digits."""
    if arrays.shape(result.value) or not rounding_estimate.is_suspect(
        result.value, result.grad or {}, request.bindings
    ):
        return []
    from gradcli.evaluation.rounding_loss import first_losses

    # Perturbed numbers may leave a domain. The result is available already, so that errors are ignored.
    with suppress(GradcliError, NotImplementedError), limits.diagnosis_budget(), enable_grad():
        return first_losses(request.program, rounding_estimate, _again(request), request.bindings, request.wrt)
    return []


def _complex_losses(
    request: EvaluationRequest, rounding_estimate: RoundingErrorEstimate, result: Result
) -> Sequence[Warning]:
    """Warn of lost digits as `_first_losses` does, for a complex value or complex inputs."""
    if arrays.shape(result.value) or not rounding_estimate.is_whole or request.grad_output is not None:
        return []
    if result.grad and not rounding_estimate.is_suspect(result.value, result.grad, request.bindings):
        return []
    # Loaded on demand: most values are found accurate before.
    from gradcli.evaluation.rounding_loss import complex_losses

    with suppress(GradcliError, NotImplementedError), limits.diagnosis_budget(), enable_grad():
        return complex_losses(request.program, rounding_estimate, _again(request), request.bindings, request.wrt)
    return []


def _explained_by_rounding(request: EvaluationRequest, watch: Watch, warnings: Sequence[Warning]) -> Sequence[Warning]:
    """Refine the warning about a non-finite number where rounding is its cause."""
    from gradcli.evaluation.inner_derivative_accuracy import explain_by_rounding

    def run(leaves: Mapping[str, Any], observe: Any) -> None:
        _evaluate(request, {**request.bindings, **leaves}, observe)

    with suppress(GradcliError, NotImplementedError), limits.optional_budget():
        return [explain_by_rounding(run, request.bindings, w, *watch.operands_of(w)) for w in warnings]
    return warnings


def _again(request: EvaluationRequest) -> Function:
    """A function that evaluates the program with some of its inputs replaced."""

    def run(given: Mapping[str, Any]) -> Any:
        return _evaluate(request, {**request.bindings, **given}, None).value

    return run


def _inner_derivative_observer(request: EvaluationRequest) -> InnerDerivativeObserver | None:
    """Return an observer of the derivatives that a program takes itself.

    None where it takes none, for complex numbers, and in ball arithmetic, which bounds its errors anyway.
    """
    if is_exact() or not resolve(request.program).differentiates or _may_be_complex(request):
        return None
    # Loaded on demand, here and below: most programs need none of these modules.
    from gradcli.evaluation.inner_derivative_accuracy import InnerDerivativeObserver

    return InnerDerivativeObserver(request.program)


def _losses_inside(request: EvaluationRequest, first: InnerDerivativeObserver) -> Sequence[Warning]:
    """Return the warning about the accuracy of derivatives that the program takes itself, or of the gradient computed
    from them.

    `first` observed the first run, which had no shadow values.
    """
    seen = type(first)(request.program)
    try:
        with limits.optional_budget(), enable_grad():
            seen.see_gradient(
                _again(request), request.bindings, request.wrt if request.gradient else (), request.grad_output
            )
    except LimitError:
        return first.unknown() if seen.warning is None else [seen.warning]
    except (GradcliError, NotImplementedError):
        # Perturbed numbers may leave a domain.
        pass
    return [] if seen.warning is None else [seen.warning]


def _is_worth_recording(request: EvaluationRequest) -> bool:
    """Return whether to try a recorded program."""
    if request.executor is None:
        namespace = arrays.chosen_namespace()
        backend = backends.of_namespace(namespace)
        largest = max(map(arrays.size, request.bindings.values()), default=1)
        if backend is None or largest < backend.worth_on(namespace).once:
            return False
    return request.executor != "eager" and not _beyond_gradients(request)


def _beyond_gradients(request: EvaluationRequest) -> bool:
    return bool(request.jacobian or request.order is not None or request.retain or request.nodes or request.wirtinger)


def _compiled(request: EvaluationRequest) -> Result | None:
    """Return the result of a recorded program; None where there may be something to warn about, or where recording
    fails."""
    from gradcli.evaluation.recordings import abstract, recording

    bindings, cotangent = request.bindings, request.grad_output
    wrt = tuple(request.wrt) if request.gradient else ()
    try:
        with observing(_assume_smooth), watching(BranchPointWatcher()):
            with limits.optional_budget():
                made = recording(
                    request.program,
                    # Scalars are recorded with their values, since they often decide conditions.
                    {n: abstract(a) if arrays.shape(a) else arrays.on_host(a) for n, a in bindings.items()},
                    wrt,
                    None if cotangent is None else abstract(cotangent),
                    arrays.chosen_namespace(),
                    rewrite=request.rewrite,
                )
            asymmetric: list[str] = []
            # PyTorch and JAX compile a program without values, which cannot be compared.
            has_values = arrays.chosen_namespace() is None
            with symmetric_parts.telling(asymmetric.append) if has_values else nullcontext():
                outcome = made.outcome([*bindings.values(), *([] if cotangent is None else [cotangent])])
    except BranchPointError:
        return None
    except (NotRecordableError, BackendError) as error:
        if request.executor is None:
            return None
        error.hint = error.hint or "--executor eager evaluates it as it goes"
        raise
    except (GradcliError, MemoryError):
        # Eager evaluation raises the error with its position.
        return None
    if outcome is None or asymmetric or not all_finite(outcome.value, *outcome.derivatives.values()):
        return None
    result = Result(as_numpy(outcome.value))
    if request.gradient:
        result.grad = {name: as_numpy(g) for name, g in outcome.derivatives.items()}
    return result


def _assume_smooth(node: Node, _cotangents: Sequence[Any], _pulled: Sequence[Any]) -> None:
    """Restrict a recorded program to points where the function of a node is smooth."""
    if isinstance(node, PrimitiveNode) and not node.is_smooth():
        raise BranchPointError(f"'{node.primitive.name}' is not differentiable here")


def _is_finite_to_order_1(result: Result) -> bool:
    parts = (result.grad, result.jacobian, result.retained)
    return all_finite(result.value, *(v for part in parts for v in (part or {}).values()))


def _numbers(result: Result) -> list[Any]:
    entries = {key: None if c is None else c.value for key, c in (result.coordinates or {}).items()}
    parts = (result.grad, result.jacobian, result.derivatives, entries, result.retained)
    return [v for part in parts for v in (part or {}).values()]


def _run(request: EvaluationRequest, watch: Watch, observe: Any, *, inaccurate: bool = False) -> Result:
    wrt = frozenset(request.wrt if request.gradient else ())
    leaves = {n: _leaf(v, n in wrt) for n, v in request.bindings.items()}
    with (
        watch.roundings() if wrt and observe is None and not is_exact() else nullcontext(),
        watching(watch.see_tie if wrt else None),
    ):
        evaluation = _evaluate(request, leaves, observe)
    result = Result(as_numpy(evaluation.value))
    retained = {name: _retained(evaluation, name) for name in request.retain}

    def again(given: Mapping[str, Any]) -> Any:
        return _evaluate(request, {**request.bindings, **given}, observe).value

    by = {name: leaves[name] for name in request.wrt}
    last = request.program.body[-1]
    places = locating(request.program.source, last.span)
    with watch.derivatives(nonfinite=observe is not None, inaccurate=inaccurate), places:
        if (request.order is not None and request.order > 1) or resolve(request.program).differentiates:
            watch.see_kinks(evaluation.value)
        if request.gradient:
            _backward(request, evaluation.value, by, result)
        # Read them before further backward passes, which would add to them.
        if request.retain:
            result.retained = {name: as_numpy(_grad(t)) for name, t in retained.items()}
        if request.nodes:
            result.nodes = [_node_row(name, value) for name, value in evaluation.names.items()]
            result.rewritten = evaluation.rewritten
        _higher_derivatives(request, evaluation.value, by, again, result, watch)
    # No observer is active: recorded numbers have no values.
    if request.sparse and by:
        result.coordinates, result.digits_left = _coordinates(request)
    return result


def _coordinates(request: EvaluationRequest) -> tuple[dict[str, Any], dict[str, int]]:
    from gradcli.evaluation.hessians import program_hessian

    last = request.program.body[-1]
    with locating(request.program.source, last.span):
        try:
            hessian = program_hessian(request.program, request.bindings, request.wrt, rewrite=request.rewrite)
            found, left = hessian.watched_at(request.bindings)
        except (LimitError, NotRecordableError) as error:
            error.hint = error.hint or "leave out --sparse"
            raise
    return {key: None if c is None else c._replace(value=as_numpy(c.value)) for key, c in found.items()}, left


def _evaluate(request: EvaluationRequest, bindings: Mapping[str, Any], observe: Any) -> Evaluation:
    return evaluate(
        request.program,
        bindings,
        rewrite=request.rewrite,
        observe=observe,
        apart=request.retain,
        # Derivatives requested by name are computed by name.
        rolling="never" if request.retain or request.nodes else "late",
    )


def _leaf(array: Any, requires_grad: bool) -> Tensor:
    # Boolean masks are not differentiated.
    return Tensor(array).requires_grad_(requires_grad and arrays.is_inexact(array))


def no_single_number(shape: Sequence[int]) -> str:
    """The message for a value that has no gradient because it is more or less than one number, with PyTorch's words."""
    count = math.prod(shape)
    return (
        f"the value has {count} element{'' if count == 1 else 's'} and a gradient is that of a single number "
        "(grad can be implicitly created only for scalar outputs)"
    )


def _backward(request: EvaluationRequest, value: Any, by: Mapping[str, Tensor], result: Result) -> None:
    """Set the gradients of `result`, unless only Jacobians were requested."""
    shape = arrays.shape(value)
    if shape and request.grad_output is None:
        if request.jacobian:
            return
        if not by:
            # There is nothing to differentiate by.
            result.grad = {}
            return
        raise DifferentiationError(
            no_single_number(shape),
            hint=f"--jacobian differentiates each element of the value, of shape {list(shape)}; "
            "--grad-output EXPR weights them, --no-grad gives the value alone",
        )
    floating = {name: leaf for name, leaf in by.items() if arrays.is_inexact(leaf.inner)}
    if _in_complex(request, value):
        _first_complex_derivatives(request, value, floating, result)
        if arrays.is_complex(value):
            return
    if isinstance(value, Tensor) and value.requires_grad:
        value.backward(request.grad_output, retain_graph=request.jacobian or request.order is not None)
    result.grad = {name: as_numpy(_grad(leaf)) for name, leaf in by.items()}


def _in_complex(request: EvaluationRequest, value: Any) -> bool:
    """Return whether derivatives other than PyTorch's gradient are requested, as that is one of real values."""
    return request.grad_output is None and (request.wirtinger or arrays.is_complex(value))


def _higher_derivatives(
    request: EvaluationRequest,
    value: Any,
    by: Mapping[str, Tensor],
    run_again: Function,
    result: Result,
    watch: Watch,
) -> None:
    floating = {name: leaf for name, leaf in by.items() if arrays.is_inexact(leaf.inner)}
    if request.jacobian and request.wirtinger:
        _wirtinger_jacobians(value, floating, result)
    if arrays.is_complex(value):
        _higher_complex_derivatives(request, value, floating, run_again, result)
        return
    if request.jacobian:
        from gradcli.calculus.jacobians import jacobians_by_either_mode

        jacobians = jacobians_by_either_mode(run_again, floating, value)
        result.jacobian = {name: as_numpy(jacobians.get(name)) for name in request.wrt}
    if request.wirtinger:
        _higher_derivatives_by_conjugates(request, value, floating, run_again, result)
        return
    leaves: Mapping[str, Any] = {name: leaf.inner for name, leaf in floating.items()}
    if request.order is not None and request.order > 1 and any(map(arrays.is_complex, leaves.values())):
        run_again, leaves = _by_parts(request, run_again, leaves)
    if request.order is not None and not request.sparse:
        from gradcli.calculus.accuracy import digits_left
        from gradcli.calculus.higher_orders import derivatives_with_shadow

        known = dict(watch.ties)
        with watching(watch.see_tie):
            number, found, deviations = derivatives_with_shadow(run_again, leaves, request.order)
        further = {key: as_numpy(d) for key, d in found.items() if "," in key}
        if any(d is not None and not nowhere(isnan(d)) for d in further.values()) and (watch.nonsmooth or watch.ties):
            # Some derivatives of order 2 or more do not exist.
            watch.settled = False
        watch.ties = watch.ties if watch.settled is False and not (known or watch.nonsmooth) else known
        result.derivatives = further
        result.digits_left = digits_left(found, deviations, number, leaves)


def _first_complex_derivatives(
    request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor], result: Result
) -> None:
    """Set the derivatives of a complex scalar, and those by conjugates where they were requested."""
    # Loaded on demand, here and below: few programs have complex numbers.
    from gradcli.calculus.derivatives import gradients
    from gradcli.evaluation.complex_results import derivatives_by_conjugates

    if request.wirtinger:
        result.wirtinger = derivatives_by_conjugates(value, leaves, gradients)
    if arrays.is_complex(value):
        result.grad = _complex_value(request, value, leaves).derivatives(gradients)


def _higher_complex_derivatives(
    request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor], run_again: Function, result: Result
) -> None:
    from gradcli.calculus.derivatives import jacobians

    complex_value = _complex_value(request, value, leaves)
    if request.jacobian:
        result.jacobian = complex_value.derivatives(jacobians)
    if request.wirtinger:
        _higher_derivatives_by_conjugates(request, value, leaves, run_again, result)
    elif request.order is not None and request.order > 1:
        result.derivatives = complex_value.higher_derivatives(run_again, request.order)


def _higher_derivatives_by_conjugates(
    request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor], run_again: Function, result: Result
) -> None:
    if request.order is not None and request.order > 1:
        from gradcli.evaluation.complex_results import higher_derivatives_by_conjugates

        result.derivatives = higher_derivatives_by_conjugates(value, leaves, run_again, request.order)


def _by_parts(
    request: EvaluationRequest, run_again: Function, leaves: Mapping[str, Any]
) -> tuple[Function, Mapping[str, Any]]:
    """The function that computes a real value of the parts of complex leaves, and these parts."""
    from gradcli.calculus.complex_derivatives import FunctionOfParts

    if request.sparse:
        name = next(name for name, leaf in leaves.items() if arrays.is_complex(leaf))
        raise DifferentiationError(
            f"coordinates are of derivatives by real inputs, and '{name}' is complex",
            hint="leave out --sparse for the derivatives by its real and imaginary parts",
        )
    found = FunctionOfParts.of(run_again, leaves)
    return found.function, found.leaves


def _wirtinger_jacobians(value: Any, leaves: Mapping[str, Tensor], result: Result) -> None:
    from gradcli.calculus.derivatives import jacobians
    from gradcli.evaluation.complex_results import derivatives_by_conjugates

    result.wirtinger = derivatives_by_conjugates(value, leaves, jacobians)


def _complex_value(request: EvaluationRequest, value: Any, leaves: Mapping[str, Tensor]) -> ComplexValue:
    from gradcli.evaluation.complex_results import ComplexValue, complex_leaves

    if request.retain:
        raise DifferentiationError(
            "intermediates have gradients of a real value, and this one is complex",
            hint="--grad-output EXPR weights it, and abs(…) is real",
        )
    left_out = complex_leaves(leaves) if request.wirtinger else {}
    rest = {name: leaf for name, leaf in leaves.items() if name not in left_out}
    return ComplexValue(value, request.program, request.bindings, rest, request.rewrite)


def _retained(evaluation: Evaluation, name: str) -> Any:
    if name not in evaluation.names:
        raise UnknownNameError(
            f"the program gives no value to '{name}', which --retain asks for",
            hint=did_you_mean(name, evaluation.names),
        )
    value = evaluation.names[name]
    if isinstance(value, Tensor) and value.requires_grad:
        value.retain_grad()
    return value


def _grad(value: Any) -> Any:
    if not isinstance(value, Tensor) or not (value.is_leaf or value.retains_grad):
        return None
    return value.grad


def _node_row(name: str, value: Any) -> dict[str, Any]:
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    return {
        "name": name,
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "retains_grad": tensor.retains_grad,
        "grad_fn": tensor.grad_fn.name() if tensor.grad_fn else None,
        "grad": as_numpy(_grad(tensor)),
    }
