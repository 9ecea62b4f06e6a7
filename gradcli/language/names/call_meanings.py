"""The pass that says which function of the table each call runs, where its text alone says so.

What it leaves out depends on values, or is an error of the call, which is raised if the call runs at all: those of
functions that the program defines, of functions that the evaluator itself provides, and of methods of lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gradcli.errors import CallError
from gradcli.language.names import scope
from gradcli.language.names.dialects import dialect_of, resolve_function
from gradcli.language.names.resolution import PYTHON_FUNCTIONS, CallMeaning, CallMeanings, Dialect, resolve
from gradcli.language.syntax import tree
from gradcli.primitives.distribution_names import METHODS, is_distribution, may_be_distribution
from gradcli.primitives.signature import SignatureParameter

# Names whose meaning as a call depends on values, or that the evaluator itself provides.
_OTHERS = frozenset().union(
    PYTHON_FUNCTIONS, scope.TRANSFORMS, scope.FUNCTIONALS, scope.GRADIENT_DROPPING, scope.DERIVATIVES, scope.DETACH,
    scope.LIST_METHODS, METHODS,
)  # fmt: skip


def call_meanings(program: tree.Module) -> CallMeanings:
    """The calls of a program that run a function of the table whatever the values are, found once.

    Raises what `dialect_of` raises.
    """
    resolution = resolve(program)
    if resolution.meanings is None:
        own = resolution.functions | resolution.parameters | resolution.assigned
        resolution.meanings = {}
        add_meanings(resolution.meanings, resolution.operations, dialect_of(program), own)
    return resolution.meanings


def add_meanings(
    meanings: CallMeanings, calls: Iterable[tree.Call], dialect: Dialect, own: Collection[str] = ()
) -> None:
    """Add the meanings of calls to those that are known; `own` are names that the program itself may give a function."""
    for call in calls:
        if call.name in _OTHERS or (call.name in own and not call.module) or _is_of_distribution(call):
            continue
        try:
            operation = resolve_function(call, dialect)
        except CallError:
            continue
        if operation is not None and not scope.is_update(call):
            fits = not call.keywords and _fits(operation.parameters, len(tree.positional(call)))
            meanings[call] = CallMeaning(operation, fits)


def _is_of_distribution(call: tree.Call) -> bool:
    return bool(call.module) and (may_be_distribution(call.module) or is_distribution(f"{call.module}.{call.name}"))


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
