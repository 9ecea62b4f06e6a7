"""Caches recordings in ball arithmetic, for Python callers that repeatedly request proved digits of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.evaluation.derivative_traces import Trace, value_and_derivatives, value_and_gradients
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.evaluation.recordings import Recording
from gradcli.evaluation.session import EvaluationRequest, RequestFactory, Result
from gradcli.executors.executor_choice import executable
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.names.resolution import resolve
from gradcli.proofs import digits

# Bound on the number of cached recordings.
_MOST = 16


class ProvedRecordings:
    """Recordings of a program of scalars, each made when the same request comes a second time.

    A recording belongs to one precision, because its constants do. In the cache, an empty list stands for a request
    seen once, and None for one that cannot be recorded.
    """

    def __init__(self) -> None:
        self._known: BoundedCache[Any, list[Recording | None]] = BoundedCache(_MOST)

    def result(self, request: RequestFactory) -> Result:
        """Return the result of a run in balls, at the current working precision.

        A replayed result has the value, gradients and derivatives, but no warnings. Raises what the run raises.
        """
        asked = request()
        if (
            asked.jacobian
            or asked.wirtinger
            or asked.grad_output is not None
            or any(map(arrays.shape, asked.bindings.values()))
            # Recordings have real numbers alone.
            or resolve(asked.program).makes_complex
            or any(map(arrays.is_complex, asked.bindings.values()))
        ):
            return digits.at_precision(request)
        known = self._known.get(key := _key(asked))
        if known is None:
            self._known[key] = []
            return digits.at_precision(request)
        if not known:
            known.append(_recorded(asked))
        # Where a replay fails, eager evaluation raises the error with its position.
        return _replayed(known[0], asked) or digits.at_precision(request)


def _key(asked: EvaluationRequest) -> Any:
    from gradcli.arrays.flint.balls import precision

    return precision(), asked.gradient, asked.order, tuple(asked.wrt), tuple(asked.bindings)


def _recorded(asked: EvaluationRequest) -> Recording | None:
    try:
        trace = _trace(asked)
        return Recording(trace, executable(trace.program, arrays.chosen_namespace()))
    except GradcliError:
        return None


def _trace(asked: EvaluationRequest) -> Trace:
    wrt = tuple(asked.wrt) if asked.gradient else ()
    if asked.order is None or asked.order == 1:
        return value_and_gradients(asked.program, asked.bindings, wrt)
    return value_and_derivatives(asked.program, asked.bindings, wrt, asked.order)


def _replayed(recording: Recording | None, asked: EvaluationRequest) -> Result | None:
    try:
        outputs = None if recording is None else recording.run([*asked.bindings.values()])
    except GradcliError:
        return None
    if recording is None or outputs is None:
        return None
    outcome = recording.named(outputs)
    result = Result(as_numpy(outcome.value))
    result.grad = _chosen(outcome.derivatives, mixed=False) if asked.gradient else None
    result.derivatives = None if asked.order is None else _chosen(outcome.derivatives, mixed=True)
    return result


def _chosen(derivatives: Mapping[str, Any], *, mixed: bool) -> dict[str, Any]:
    """The derivatives of order 1, or (`mixed`) those of higher order."""
    return {key: d for key, d in derivatives.items() if ("," in key) is mixed}
