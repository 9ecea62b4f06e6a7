"""Takes a program with several formulas apart: statements that are expressions, or the items of a list at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcli.language.names.evaluator_functions import LIST_METHODS
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple


class LabelledFormula(NamedTuple):
    """One formula of a program: its text, and the program that has it as its value."""

    label: str
    program: Module


def formulas_of(program: Module) -> list[LabelledFormula]:
    """The formulas of a program: the items of a list at its end, else its statements that are expressions; a single
    one is the program itself."""
    last = program.body[-1]
    items = _listed(last, program)
    if items:
        return [_formula(program, program.body[:-1], tree.Evaluate(item.span, item)) for item in items]
    *before, end = range(len(program.body))
    places = [*(place for place in before if _is_formula(program.body[place])), end]
    if len(places) < 2:
        return [LabelledFormula(" ".join(program.source.split()), program)]
    return [_formula(program, program.body[:place], program.body[place]) for place in places]


def _formula(program: Module, before: Sequence[tree.Statement], last: tree.Statement) -> LabelledFormula:
    """The formula of one statement, after those of the statements before it that are not formulas themselves."""
    node = last.value if isinstance(last, tree.Evaluate) else last
    label = " ".join(program.source[node.span.start : node.span.end].split())
    defining = (statement for statement in before if not _is_formula(statement))
    return LabelledFormula(label, Module(last.span, program.source, (*defining, last)))


def _listed(last: tree.Statement, program: Module) -> Sequence[tree.Expression]:
    """The items of a list of formulas at the end of a program; none for a decimal comma, as in 0,5."""
    if not isinstance(last, tree.Evaluate) or not isinstance(last.value, tree.List) or len(last.value.items) < 2:
        return ()
    if any(isinstance(item, tree.List) for item in last.value.items):
        return ()
    written = program.source[last.span.start : last.span.end]
    is_decimal = type(last.value) is tree.Tuple and re.search(r"\d,\d", written) is not None
    return () if is_decimal else last.value.items


def _is_formula(statement: tree.Statement) -> bool:
    """Return whether a statement is an expression that is computed for its value."""
    if not isinstance(statement, tree.Evaluate) or isinstance(statement.value, (tree.String, tree.Constant)):
        return False
    value = statement.value
    return not (isinstance(value, tree.Call) and value.receiver is not None and value.name in LIST_METHODS)
