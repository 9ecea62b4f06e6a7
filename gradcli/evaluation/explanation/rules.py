"""Explains the rules by which a formula is differentiated, and evaluates the result where its names have values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError, locating
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning
from gradcli.formulas.differentiation_rules import RuleDerivation, rule_derivations
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple


class RulesExplanation(NamedTuple):
    """The derivations, the point, and by the names of each derivation its value there; both are empty where a name has
    no value."""

    program: tree.Module
    derivations: Sequence[RuleDerivation]
    point: Mapping[str, Any]
    values: Mapping[str, Any]
    warnings: Sequence[Warning]


def explain_rules(
    program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], order: int, language: str
) -> RulesExplanation:
    """Differentiate a formula by rules. Raises DifferentiationError for what is not a formula of numbers."""
    for name, value in bindings.items():
        if arrays.shape(value):
            raise DifferentiationError(
                f"--symbolic explains formulas of numbers, and '{name}' is a tensor",
                hint="without --symbolic, the steps of a run are explained",
            )
    with locating(program.source, program.body[-1].span):
        derivations = [*rule_derivations(program, wrt, order, language)]
    reads = [n for n in scope.free_names(program) if n not in scope.CONSTANTS or n in wrt]
    if not reads or any(name not in bindings for name in reads):
        return RulesExplanation(program, derivations, {}, {}, ())
    request = session.EvaluationRequest(program, bindings, wrt, order=2 if order == 2 else None)
    result = session.run(request)
    values = {**(result.grad or {}), **(result.derivatives or {})}
    return RulesExplanation(program, derivations, dict(bindings), values, result.warnings)
