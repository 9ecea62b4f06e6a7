"""The pass that says which function of the table each call runs, where its text alone says so.

What it leaves out depends on values, or is an error of the call, which is raised if the call runs at all: those of
functions that the program defines, of functions that the evaluator itself provides, and of methods of lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gradcli.errors import CallError
from gradcli.language.names import scope
from gradcli.language.names.dialects import dialect_of, resolve_function
from gradcli.language.names.evaluator_functions import (
    DERIVATIVES,
    DETACH,
    FUNCTIONALS,
    GRADIENT_DROPPING,
    LIST_METHODS,
    PYTHON_FUNCTIONS,
    TRANSFORMS,
)
from gradcli.language.names.resolution import CallMeaning, CallMeanings, Dialect, resolve
from gradcli.language.syntax import tree
from gradcli.primitives.distribution_names import METHODS, is_distribution, may_be_distribution
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import SignatureParameter

# Names whose meaning as a call depends on values, or that the evaluator itself provides.
_OTHERS = frozenset().union(
    PYTHON_FUNCTIONS, TRANSFORMS, FUNCTIONALS, GRADIENT_DROPPING, DERIVATIVES, DETACH, LIST_METHODS, METHODS
)


def call_meanings(program: tree.Module) -> CallMeanings:
    """The calls of a program that run a function of the table whatever the values are, found once.

    Raises what `dialect_of` raises.
    """
    resolution = resolve(program)
    if resolution.meanings is None:
        dialect, own = dialect_of(program), resolution.functions | resolution.bound
        known = ((call, _operation(call, dialect, own)) for call in resolution.operations)
        resolution.meanings = {call: meaning_of(call, found) for call, found in known if found is not None}
    return resolution.meanings


def meaning_of(call: tree.Call, operation: Operation) -> CallMeaning:
    """The meaning of a call of a function of the table."""
    return CallMeaning(operation, not call.keywords and _fits(operation.parameters, len(tree.positional(call))))


def _operation(call: tree.Call, dialect: Dialect, own: Collection[str]) -> Operation | None:
    """The function of the table that a call runs, or None; `own` are names that may be those of the program's own."""
    if call.name in _OTHERS or (call.name in own and not call.module):
        return None
    if _is_of_distribution(call) or scope.is_update(call):
        return None
    try:
        return resolve_function(call, dialect)
    except CallError:
        return None


def _is_of_distribution(call: tree.Call) -> bool:
    # Distributions stand in modules of packages.
    is_inside = "." in call.module
    return is_inside and (may_be_distribution(call.module) or is_distribution(f"{call.module}.{call.name}"))


def _fits(parameters: Iterable[SignatureParameter], count: int) -> bool:
    """Return whether so many positional arguments alone are neither too many nor too few."""
    for parameter in parameters:
        if parameter.variadic:
            return False
        if count and not parameter.keyword_only:
            count -= 1
        elif parameter.default is None:
            return False
    return count == 0
