"""Checks the derivatives of a program or function: against finite differences, or against proved derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gradcli import arrays, limits
from gradcli.calculus.checks import gradcheck as calculus
from gradcli.calculus.checks.gradcheck import TOLERANCE, Report
from gradcli.compiled.compiling import compile
from gradcli.compiled.confined_programs import ConfinedProgram
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import BindingError, locating
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import tree
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.named_tuples import NamedTuple


def gradcheck(
    program_or_callable: str | CompiledProgram | Callable[..., Any],
    inputs: Any,
    order: int = 1,
    tolerance: float = TOLERANCE,
    *,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    max_seconds: float | None = None,
    max_memory: int | str | None = None,
) -> Report:
    """Check the derivatives of a program or of a function of Tensors against finite differences.

    `inputs` are the values at which to check, numbers, arrays or Tensors of any shape: a mapping of names to values for
    a program, a sequence or a mapping of keyword arguments for a function. Each order up to `order` is compared with
    differences of the order below, within a relative `tolerance`. The report is true where all agree; its `rows` are
    the worst entry of each leaf in each order (see `Check`). The whole check of a program is limited by `max_steps` and
    `max_elements`, and for source text also by `max_seconds` and `max_memory` (see `compile`); a function has no
    limits.

    Raises what the program or function raises at `inputs`, BindingError for inputs of a program that are not a mapping,
    and DifferentiationError where there are none.
    """
    if isinstance(program_or_callable, str):
        program_or_callable = compile(
            program_or_callable,
            max_steps=max_steps,
            max_elements=max_elements,
            max_seconds=max_seconds,
            max_memory=max_memory,
        )
    if not isinstance(program_or_callable, CompiledProgram):
        return calculus.check_gradients(program_or_callable, inputs, order, tolerance)
    if not isinstance(inputs, Mapping):
        raise BindingError("the inputs of a program are a mapping of names to values", hint="{'x': 5.0}")
    limits.check(max_steps=max_steps, max_elements=max_elements)
    if isinstance(program_or_callable, ConfinedProgram):
        check = partial(gradcheck, max_steps=max_steps, max_elements=max_elements)
        source, sent = program_or_callable.program.source, program_or_callable.picklable_inputs(inputs)[0]
        report: Report = program_or_callable.apart(check, source, sent, order, tolerance)
        return report
    with locating(program_or_callable.program.source), limits.within(max_steps, max_elements):
        return calculus.check_gradients(program_or_callable, inputs, order, tolerance)


class Checked(NamedTuple):
    """The report on a program, and warnings that explain entries that could not be compared."""

    report: Report
    warnings: Sequence[Warning]


def check_program(
    program: tree.Module,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    order: int = 1,
    tolerance: float = TOLERANCE,
    by_proof: bool = False,
) -> Checked:
    """Check the derivatives of `program` by the names in `wrt`: against differences, or with `by_proof` against proved
    ones.

    Raises what `gradcheck` and `check_by_proof` raise.
    """

    def function(**leaves: Any) -> Any:
        return evaluate(program, {**bindings, **leaves}).value

    with locating(program.source):
        if by_proof:
            # Ball arithmetic is loaded only on demand.
            from gradcli.compiled.proved_check import check_by_proof

            report = check_by_proof(program, bindings, wrt, order, tolerance)
        else:
            report = calculus.check_gradients(function, {name: bindings[name] for name in wrt}, order, tolerance)
    explained = any(row.problem in (calculus.KINK, calculus.NONFINITE) for row in report.rows)
    return Checked(report, _warnings(program, bindings, wrt) if explained else ())


def _warnings(program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str]) -> Sequence[Warning]:
    """Return the warnings about kinks and non-finite numbers from one run of the program."""
    request = session.EvaluationRequest(program, bindings, wrt)
    value = session.run(request._replace(gradient=False)).value
    return session.run(request._replace(grad_output=arrays.ones_like(value))).warnings
