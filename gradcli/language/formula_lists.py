"""Takes a program with several formulas apart: statements that are expressions, or the items of a list at its end."""

from __future__ import annotations

import re
from typing import NamedTuple

from gradcli.language.names.scope import LIST_METHODS
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module


class LabelledFormula(NamedTuple):
    """One formula of a program: its text, and the program that has it as its value."""

    label: str
    program: Module


def formulas_of(program: Module) -> list[LabelledFormula]:
    """The formulas of a program: the items of a list at its end, else its statements that are expressions; a single
    one is the program itself."""
    *before, last = program.body
    defining = tuple(s for s in before if not _is_formula(s))
    if _is_list(last, program) and isinstance(last, tree.Evaluate) and isinstance(last.value, tree.List):
        return [_formula(program, defining, tree.Evaluate(item.span, item)) for item in last.value.items]
    found = [i for i, statement in enumerate(program.body) if _is_formula(statement)]
    if len(program.body) - 1 not in found:
        found.append(len(program.body) - 1)
    if len(found) < 2:
        return [LabelledFormula(" ".join(program.source.split()), program)]
    kept = [tuple(s for s in program.body[:place] if not _is_formula(s)) for place in found]
    return [_formula(program, others, program.body[place]) for others, place in zip(kept, found)]


def _formula(program: Module, before: tuple[tree.Statement, ...], last: tree.Statement) -> LabelledFormula:
    node = last.value if isinstance(last, tree.Evaluate) else last
    label = " ".join(program.source[node.span.start : node.span.end].split())
    return LabelledFormula(label, Module(last.span, program.source, (*before, last)))


def _is_list(last: tree.Statement, program: Module) -> bool:
    """Whether a program ends with a list of formulas: not with a decimal comma, as in 0,5."""
    if not isinstance(last, tree.Evaluate) or not isinstance(last.value, tree.List) or len(last.value.items) < 2:
        return False
    if any(isinstance(item, tree.List) for item in last.value.items):
        return False
    written = program.source[last.span.start : last.span.end]
    return type(last.value) is not tree.Tuple or re.search(r"\d,\d", written) is None


def _is_formula(statement: tree.Statement) -> bool:
    """Whether a statement is an expression that is computed for its value."""
    if not isinstance(statement, tree.Evaluate) or isinstance(statement.value, (tree.String, tree.Constant)):
        return False
    value = statement.value
    return not (isinstance(value, tree.Call) and value.receiver is not None and value.name in LIST_METHODS)
