"""Programs extended by statements that read their value."""

from __future__ import annotations

from gradcli.errors import EvaluationError
from gradcli.language.syntax import tree

# A name with a space, so that no program can use it.
_VALUE = "complex value"


def with_named_value(module: tree.Module) -> tuple[list[tree.Statement], str]:
    """The statements of a program with a complex value, and the name that has the value after them.

    Raises EvaluationError where the program ends with a block.
    """
    *before, last = module.body
    if isinstance(last, tree.Evaluate):
        return [*before, tree.Assign(last.span, (tree.BoundName(last.span, _VALUE),), last.value)], _VALUE
    if isinstance(last, tree.Assign) and isinstance(last.targets[0], tree.BoundName):
        return [*before, last], last.targets[0].name
    raise EvaluationError(
        "the value of the program is complex, and its last statement has no name",
        hint="end it with a name or an expression",
        span=last.span,
        source=module.source,
    )
