"""Checks whether a program that a hint proposes would run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli import limits
from gradcli.errors import CallError, GradcliError, LimitError, ProgramSyntaxError, Span, UnknownNameError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.language.syntax.layout import bracketed_text

# Budget (steps, array elements) of the check; a proposal that exceeds it counts as running.
_MOST = limits.Budget(100_000, 1_000_000)
# Value of names whose values are not known, such as columns; it is in the domain of most functions.
_ASSUMED = 0.5


def proposal_runs(text: str, new: Span, values: Mapping[str, Any], read: Callable[[str], tree.Module]) -> bool:
    """Return whether a program, in which the text at `new` was proposed, runs with these values of its names.

    Syntax errors and wrong names outside of `new` are not the proposal's, and are ignored. Where a name has no value,
    one is made up, and only errors of syntax, names and calls within `new` count.
    """
    if text[new.end : new.end + 1] == "(":
        # Include the arguments, which have to fit the proposed function.
        new = Span(new.start, new.end + len(bracketed_text(text[new.end :])) + 2)
    budget = limits.Budget(_MOST.max_steps, _MOST.max_elements)
    known = True
    try:
        with limits.using_budget(budget):
            program = read(text)
            made_up = scope.free_names(program).keys() - values.keys() - set(scope.CONSTANTS)
            known = not made_up
            evaluate(program, {**values, **dict.fromkeys(made_up, _ASSUMED)})
    except LimitError:
        return True
    except (ProgramSyntaxError, UnknownNameError, CallError) as error:
        return error.span is None or not _meet(error.span, new)
    except GradcliError:
        return not known
    return True


def _meet(one: Span, other: Span) -> bool:
    return one.start < max(other.end, other.start + 1) and other.start < max(one.end, one.start + 1)
