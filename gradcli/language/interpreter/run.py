"""Evaluates a program: a syntax tree and values of its inputs give a value and the values of its names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, GradcliError, LimitError, Proposal, SeveralTensorsError
from gradcli.language.interpreter import calls, expressions, statements
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import TOO_DEEP_MESSAGE, Evaluator, Observer, Rolling, Task, block
from gradcli.language.interpreter.mutable_references import ElementwiseInput, MutableReference
from gradcli.language.interpreter.provenance import UNKNOWN, Provenance
from gradcli.language.interpreter.values import FUNCTIONS, Value, as_tensor_or_number, written_number
from gradcli.language.names import scope
from gradcli.language.stable.removable import rewritten_expressions
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple

_HANDLERS: dict[type, Callable[..., Task]] = {**statements.HANDLERS, **expressions.HANDLERS, **calls.HANDLERS}
_SIMPLE: dict[type, Callable[..., Value]] = {**statements.SIMPLE, **expressions.SIMPLE}

# Cost of analysing the source before it runs, in eighths of a step for each character.
_CHARACTER_COST = 2
# Cost of a statement that is a literal, in eighths of a step.
_LITERAL_STATEMENT_COST = 9


class Evaluation(NamedTuple):
    """The value of a program, the last value of each name in the order of assignment, and the stable forms in use."""

    value: Value
    names: dict[str, Value]
    rewritten: tuple[RewrittenExpression, ...] = ()


def evaluate(
    program: tree.Module,
    bindings: Mapping[str, Value],
    *,
    rewrite: bool | Mapping[tree.SyntaxNode, RewrittenExpression] = True,
    observe: Observer | None = None,
    provenance: Provenance = UNKNOWN,
    apart: Collection[str] = (),
    clauses: bool = True,
    rolling: Rolling = "early",
) -> Evaluation:
    """Run `program` with its input names bound to numbers, arrays or Tensors.

    With `rewrite`, expressions that have a stable form (see `gradcli.language.stable.stable_expressions` and `gradcli.language.stable.removable`)
    are evaluated in it, except for forms that drop a name of `apart`, by which the value is differentiated. `rewrite`
    may also be the mapping of forms to use.

    With `clauses=False`, functions with a `backward` clause are differentiated like any other function.

    With `rolling` "early", loops become one operation where that pays; "late" only where their operations are more than
    are examined for kinks and losses of digits; "never" where each operation is needed.

    Raises UnknownNameError and CallError for wrong names and calls, LimitError past the limits of the run, and
    EvaluationError or DifferentiationError where an operation fails, each with its place in the source.
    """
    limits.charge_steps(_CHARACTER_COST * len(program.source))
    scope.check_names(program, bindings)
    forms = (
        rewrite if isinstance(rewrite, Mapping) else rewritten_expressions(program, bindings, apart) if rewrite else {}
    )
    handlers = provenance.handlers(_HANDLERS)
    return _run(Evaluator(program, bindings, forms, observe, provenance, handlers, _SIMPLE, clauses, rolling))


def literal_value(literal: tree.Number, source: str) -> Value:
    """The value of a program that is one literal, without running it, at the same cost."""
    limits.charge_steps(_CHARACTER_COST * len(source) + _LITERAL_STATEMENT_COST)
    return written_number(literal, arrays.chosen_scalars())


def _run(machine: Evaluator) -> Evaluation:
    token = current_span.set(None)
    try:
        with arrays.quiet():
            value = machine.drive(block(machine, machine.program.body), machine.program, machine.scope)
    except RecursionError:
        raise LimitError(TOO_DEEP_MESSAGE) from None
    finally:
        current_span.reset(token)
    if value is None:
        last = machine.program.body[-1]
        raise EvaluationError(
            "the program ends without a value",
            hint="its value is that of its last statement",
            span=last.span,
            source=machine.program.source,
        )
    value = _tensor(machine.program, value)
    others = (ElementwiseInput, ProgramList, *FUNCTIONS, range, str)
    kept = {n: v for n, v in machine.names.items() if not isinstance(v, others)}
    names = {n: v.value if isinstance(v, MutableReference) else v for n, v in kept.items()}
    return Evaluation(value, names, tuple(machine.rewritten))


def _tensor(program: tree.Module, value: Value) -> Value:
    last = program.body[-1].span
    if isinstance(value, ProgramList) and value.made == "tuple":
        # Imported here as only wrong programs need it.
        from gradcli.language.syntax.foreign_notations import with_decimal_points, without_thousands_commas

        text = program.source[last.start : last.end]
        hint = "write one of them, or [a, b] for a tensor of them"
        decimal = text if text.startswith("(") else with_decimal_points(text)
        if decimal != text:
            hint = Proposal(f"write {decimal}, or [a, b] for a tensor of them", decimal, otherwise=hint)
        whole = text if text.startswith("(") else without_thousands_commas(text)
        if whole not in (text, decimal):
            hint = Proposal(f"write {whole}, or {decimal} where the comma is decimal", whole, otherwise=hint)
        raise EvaluationError(
            f"the program ends with {len(value.items)} values: {text}", hint=hint, span=last, source=program.source
        )
    try:
        return as_tensor_or_number(value, "the value of the program")
    except GradcliError as error:
        error.locate(last, program.source)
        if isinstance(error, SeveralTensorsError):
            error.of_program = True
        raise
