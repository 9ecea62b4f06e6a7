"""Whether the program that a hint proposes runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli import limits
from gradcli.errors import CallError, GradcliError, LimitError, ProgramSyntaxError, Span, UnknownNameError
from gradcli.language import scope
from gradcli.language.interpreter import evaluate
from gradcli.language.syntax import tree
from gradcli.language.syntax.layout import within_brackets

# What a proposal may take, before it is printed without having been evaluated to its end.
_MOST = limits.Budget(100_000, 1_000_000)
# A number for a name whose value is not known, as those of columns: in the domain of most functions.
_ASSUMED = 0.5


def runs(text: str, new: Span, values: Mapping[str, Any], read: Callable[[str], tree.Module]) -> bool:
    """Whether a program runs with these values of its names, where what is at the place `new` in it was proposed.

    What is wrong with its form or its names elsewhere is a mistake of its author's that the proposal leaves. Where a name
    has no value, numbers are made up for it, and only the form, the names and the calls of what is new can be wrong.
    """
    if text[new.end : new.end + 1] == "(":
        # The arguments of a function that is proposed fit it or not.
        new = Span(new.start, new.end + len(within_brackets(text[new.end :])) + 2)
    budget = limits.Budget(_MOST.max_steps, _MOST.max_elements)
    known = True
    try:
        with limits.spending(budget):
            program = read(text)
            made_up = scope.outer_reads(program).keys() - values.keys() - set(scope.CONSTANTS)
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
