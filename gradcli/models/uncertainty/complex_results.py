"""The results of a program with a complex value: its parts, its modulus and its angle, which are real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.language.named_values import with_named_value
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree

# The results that share a covariance matrix, and those that are functions of them.
_PARTS, _POLAR = ("real", "imag"), ("abs", "angle")


def program_of_parts(module: tree.Module) -> tree.Module:
    """The program whose value has the real and the imaginary part, the modulus and the angle of each element of that of
    `module`, one after the other. Raises EvaluationError where the program ends with a block."""
    statements, name = with_named_value(module)
    last = module.body[-1]

    def call(function: str, argument: tree.Expression) -> tree.Expression:
        return tree.Call(last.span, function, last.span, None, (argument,), (), stable_expressions.MODULE)

    parts = [call("ravel", call(part, tree.Name(last.span, name, ""))) for part in (*_PARTS, *_POLAR)]
    value = call("concat", tree.List(last.span, tuple(parts)))
    return tree.Module(module.span, module.source, (*statements, tree.Evaluate(last.span, value)))


def labels_of_parts(labels: Sequence[str], *, several: bool) -> list[str]:
    """The labels of the results of `program_of_parts`, in their order, by those of the complex values."""
    return [f"{part}({label})" if several else part for part in (*_PARTS, *_POLAR) for label in labels]


def count_of_parts(results: int) -> int:
    """How many of the results are real and imaginary parts, which come first."""
    return results * len(_PARTS) // len((*_PARTS, *_POLAR))


def polar_results_at_zero(results: Sequence[Any]) -> list[int]:
    """The indices of modulus and angle of 0, of which there is no linear propagation: it would give them the
    uncertainty 0."""
    count = len(results) // len((*_PARTS, *_POLAR))
    zeros = [i for i in range(count) if bool(results[2 * count + i] == 0)]
    return [place * count + i for place in (2, 3) for i in zeros]


def without_polar_at_zero(sensitivities: Any, value: Any) -> Any:
    """The sensitivities `[m, n]` of the results `[m]`, nan for modulus and angle of 0."""
    np = arrays.numpy_namespace()
    nowhere = np.zeros(len(value), "bool")
    nowhere[polar_results_at_zero(value)] = True
    return np.where(nowhere[:, None], np.nan, sensitivities)
