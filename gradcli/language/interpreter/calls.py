"""Handlers of calls: of primitives, derivatives, Python's built-in functions, and functions of the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from gradcli.errors import CallError, UnknownNameError
from gradcli.language.interpreter import call_arguments, defined_functions, lost_digits, whole_numbers
from gradcli.language.interpreter.lists import ProgramList, as_default_dtype
from gradcli.language.interpreter.machine import Caller, Evaluator, Scope, Task, arguments_of
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.interpreter.values import (
    FUNCTIONS,
    TENSOR_CONVERTIBLE,
    BuiltinFunction,
    RandomVariable,
    TransformedFunction,
    Value,
    as_tensor_or_number,
    check_arguments,
)
from gradcli.language.names import dialects
from gradcli.language.names import scope as scope_of_program
from gradcli.language.names.evaluator_functions import (
    DERIVATIVES,
    DETACH,
    FUNCTIONALS,
    GRADIENT_DROPPING,
    LIST_METHODS,
    PYTHON_FUNCTIONS,
    TRANSFORMS,
)
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.distribution_names import METHODS, is_distribution, may_be_distribution
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import SignatureParameter, parse_signature, resolve_keyword

# First arguments that may decide what a call means.
_HAVING_CALLS = (RandomVariable, *FUNCTIONS)
# Keywords that state properties of the result.
_PROPERTY_KEYWORDS = frozenset({"dtype", "device", "requires_grad"})
# Functions whose result is a view of their operand in NumPy and PyTorch.
_VIEWS = frozenset(
    {"reshape", "view", "transpose", "permute", "swapaxes", "moveaxis", "squeeze", "unsqueeze", "expand_dims"}
    | {"ravel", "broadcast_to", "expand", "diagonal"}
)


def _call(machine: Evaluator, node: tree.Call, scope: Scope) -> Task:
    meaning = machine.meanings.get(node)
    if meaning is None:
        return (yield from _call_by_values(machine, node, scope))
    positional, keywords = yield from arguments_of(tree.positional(node), node.keywords)
    if positional and isinstance(positional[0], _HAVING_CALLS):
        return (yield from _call_on_values(machine, node, positional, keywords, scope))
    operation = meaning.operation
    return _call_operation(machine, node, operation, operation.parameters, positional, keywords, scope, meaning.fits)


def _call_by_values(machine: Evaluator, node: tree.Call, scope: Scope) -> Task:
    """Evaluate a call whose meaning is known only at run time, as a name of the program may be that of a function: a
    functional update, a call of such a function, or of what else its values decide."""
    if scope_of_program.is_update(node):
        # Imported here as few programs use it.
        from gradcli.language.interpreter.builtin_calls.functional_updates import evaluate_update

        return (yield from evaluate_update(machine, node))
    function = _own(machine, node, scope)
    positional, keywords = yield from arguments_of(tree.positional(node), node.keywords)
    if function is not None:
        again = defined_functions.repeated_call(machine, node, function, scope, positional, keywords)
        return again or (yield from _invoke(machine, node, function, positional, keywords, scope))
    return (yield from _call_on_values(machine, node, positional, keywords, scope))


def _call_on_values(
    machine: Evaluator, node: tree.Call, positional: list[Value], keywords: dict[str, Value], scope: Scope
) -> Task:
    """Call a method of a list or of a random variable, or a function of the language by name."""
    if node.receiver is not None and isinstance(positional[0], ProgramList) and node.name in LIST_METHODS:
        from gradcli.language.interpreter.builtin_calls import python_functions

        kept = {name: machine.kept(value) for name, value in keywords.items()}
        return python_functions.method(node, positional[0], [*map(machine.kept, positional[1:])], kept)
    if node.receiver is not None and isinstance(positional[0], RandomVariable):
        from gradcli.language.interpreter.builtin_calls import random_variables

        node, positional, keywords = random_variables.method(node, positional[0], positional[1:], keywords)
    return (yield from _call_named(machine, node, positional, keywords, scope))


def _apply(machine: Evaluator, node: tree.Apply, scope: Scope) -> Task:
    function = yield node.function
    if not isinstance(function, FUNCTIONS):
        raise CallError(
            "only a function can be called", hint="write '*' before '(' to multiply", span=node.function.span
        )
    positional, keywords = yield from arguments_of(node.arguments, node.keywords)
    return (yield from _invoke(machine, node, function, positional, keywords, scope))


def _own(machine: Evaluator, node: tree.Call, scope: Scope) -> Value:
    """The function to which a name of the program refers, or None."""
    if node.module:
        return None
    found = machine.find(node.name, scope)
    value = None if found is None else found.names[node.name]
    return value if isinstance(value, FUNCTIONS) else None


def _invoke(
    machine: Evaluator,
    node: tree.Call | tree.Apply,
    function: Value,
    positional: Sequence[Value],
    keywords: Mapping[str, Value],
    scope: Scope,
) -> Task:
    """Call a function that is given as a value."""
    if isinstance(function, BuiltinFunction):
        span = node.name_span if isinstance(node, tree.Call) else node.function.span
        named = tree.Call(node.span, function.name, span, None, node.arguments, node.keywords, function.module)
        return (yield from _call_named(machine, named, [*positional], dict(keywords), scope))
    if isinstance(function, TransformedFunction):
        from gradcli.language.interpreter.builtin_calls import function_transforms

        return (
            yield from function_transforms.call(
                node, function, positional, keywords, Caller(_invoke, machine, node, scope)
            )
        )
    call_arguments.fit(function.name, function.parameters, positional, keywords)
    given = dict(zip((p.name for p in function.parameters), positional)) | dict(keywords)
    if isinstance(node, tree.Call):
        machine.provenance.enter(node)
    result = yield from defined_functions.call(machine, function, scope, given)
    if isinstance(node, tree.Call):
        machine.provenance.leave()
    return result


def _call_named(
    machine: Evaluator, node: tree.Call, positional: list[Value], given: dict[str, Value], scope: Scope
) -> Task:
    """Call a function of the language by name: `torch.autograd.grad`, a distribution, a transform or control flow, a
    functional, `item()` and the like, a function of Python, or else one of the table."""
    if node.module == "torch.autograd" and node.name == "grad":
        from gradcli.language.interpreter.builtin_calls import differentiation

        return differentiation.gradient(machine, node, positional, given)
    if node.module and is_distribution(f"{node.module}.{node.name}"):
        from gradcli.language.interpreter.builtin_calls import random_variables

        return random_variables.made(node, positional, given)
    if node.name in TRANSFORMS or (positional and isinstance(positional[0], FUNCTIONS)):
        from gradcli.language.interpreter.builtin_calls import function_transforms

        made = function_transforms.made(node, positional, given)
        if made is not None:
            return made
        task = function_transforms.control_flow_task(node, Caller(_invoke, machine, node, scope), positional, given)
        if task is not None:
            return (yield from task)
    if node.name in FUNCTIONALS and (
        isinstance(next(iter(positional), None), FUNCTIONS) or table.find(node.name) is None
    ):
        from gradcli.language.interpreter.builtin_calls import functionals

        return functionals.call(machine, node, Caller(_invoke, machine, node, scope), scope, positional, given)
    if node.name in GRADIENT_DROPPING and len(positional) == 1 and not given and machine.loses_no_gradient(node):
        from gradcli.primitives.entries.manipulation.copies import one_element

        return machine.apply(node, node.name, one_element, as_tensor_or_number(positional[0], f"'{node.name}'"))
    if node.name in PYTHON_FUNCTIONS:
        from gradcli.language.interpreter.builtin_calls import python_functions

        function = python_functions.find(node)
        if function is not None:
            return function(*positional, **given)
    operation, parameters = _meaning(machine, node)
    return _call_operation(machine, node, operation, parameters, positional, given, scope)


def _call_operation(
    machine: Evaluator,
    node: tree.Call,
    operation: Operation | None,
    parameters: Sequence[SignatureParameter],
    positional: list[Value],
    given: dict[str, Value],
    scope: Scope,
    fits: bool = False,
) -> Value:
    """Call a function of the table, None for one of the evaluator itself. With `fits`, its arguments are known to fit
    the signature."""
    if operation is not None and operation.name in whole_numbers.FUNCTIONS and not given and machine.scalars is None:
        exact = whole_numbers.of_function(operation.name, positional)
        if exact is not None:
            return exact
    if operation is not None and (
        len(positional) > 1 or any(isinstance(v, ProgramList) for v in positional[:1]) or machine.imports
    ):
        from gradcli.language.interpreter.builtin_calls import ambiguous_reductions

        compute = ambiguous_reductions.resolve_reduction(machine, node, operation, positional, given, scope)
        if compute is not None:
            return machine.apply(node, operation.name, compute)
    keywords: dict[str, Value] = {}
    dtype: Value = None
    if not _PROPERTY_KEYWORDS.isdisjoint(given):
        given, dtype = _take_property_keywords(node, given, parameters)
    for keyword, value in given.items():
        name = resolve_keyword(keyword, parameters)
        if name in keywords:
            raise CallError(f"'{node.name}' got '{name}' twice", span=node.span)
        keywords[name] = value
    if not fits:
        _spread(parameters, positional, keywords)
        call_arguments.fit(node.name, parameters, positional, keywords)
    first = positional[0] if positional else None
    if isinstance(first, MutableReference) and node.name in _VIEWS:
        rest = positional[1:]
        return first.view(lambda x: _apply_operation(machine, node, operation, [x, *rest], keywords, scope))
    machine.provenance.enter(node)
    result = _apply_operation(machine, node, operation, positional, keywords, scope)
    machine.provenance.leave()
    if operation is not None and operation.name in lost_digits.FUNCTIONS and positional and machine.scalars is None:
        lost_digits.examine(node.name, positional[0], result, rolls=machine.rolls)
    if dtype is not None and not isinstance(result, tuple):
        from gradcli.primitives.entries.manipulation.copies import of_dtype

        result = machine.apply(node, node.name, of_dtype, as_tensor_or_number(result, f"'{node.name}'"), dtype)
    return result


def _take_property_keywords(
    node: tree.Call, given: Mapping[str, Value], parameters: Sequence[SignatureParameter]
) -> tuple[dict[str, Value], Value]:
    """The keywords of a call without those for `dtype`, `device` and `requires_grad` that the signature lacks, and the
    `dtype`, None if there is none.

    Raises CallError if they ask for what does not hold anyway, but for the complex dtype. Those of a function without a
    module or receiver stay, so that they do not fit its signature.
    """
    from gradcli.primitives.entries.manipulation.copies import check_properties

    known = {p.name for p in parameters}
    stated = {name: value for name, value in given.items() if name in _PROPERTY_KEYWORDS and name not in known}
    if node.module or node.receiver is not None or not stated:
        check_properties(**stated)
        return {name: value for name, value in given.items() if name not in stated}, stated.get("dtype")
    return dict(given), None


def _spread(parameters: Sequence[SignatureParameter], positional: list[Value], keywords: dict[str, Value]) -> None:
    """Move the keyword argument of a variadic parameter to its position, as in `zeros(shape=(2, 3))`."""
    for place, parameter in enumerate(parameters):
        if parameter.variadic and parameter.name in keywords and len(positional) == place:
            positional.append(keywords.pop(parameter.name))


def _meaning(machine: Evaluator, node: tree.Call) -> tuple[Operation | None, tuple[SignatureParameter, ...]]:
    """The operation that is called, None for a function of the evaluator itself, and its parameters."""
    # The method `diff` of PyTorch tensors gives differences of neighbours.
    difference = node.receiver is not None and machine.dialect == "torch" and table.differs(node.name)
    if not node.module and node.name in DERIVATIVES and not difference:
        return None, parse_signature(DERIVATIVES[node.name])
    if node.name in DETACH:
        return None, parse_signature("x")
    operation = dialects.resolve_function(node, machine.dialect)
    if operation is None and node.name in TRANSFORMS:
        raise CallError(
            f"'{node.name}' needs a function of the program",
            hint="f(x) = … defines one, lambda x: … is one",
            span=node.span,
        )
    if operation is None and node.name in DERIVATIVES:
        signature = f"{node.name}({DERIVATIVES[node.name]})"
        raise CallError(f"'{node.name}' takes no prefix of a library", hint=f"write {signature}", span=node.span)
    if node.name in LIST_METHODS and (operation is None or (node.receiver and node.name == "append")):
        raise CallError(f"'{node.name}' is a method of lists", hint="ys = [] begins one", span=node.name_span)
    if operation is None and (may_be_distribution(node.module) or node.name in METHODS):
        from gradcli.language.interpreter.builtin_calls import random_variables

        if (error := random_variables.missing_method_error(node)) is not None:
            raise error
    if operation is None and node.receiver is not None and node.name in PYTHON_FUNCTIONS:
        raise UnknownNameError(f"'{node.name}' is a function and no method", hint=f"write {node.name}(x)")
    if operation is None:
        raise UnknownNameError(f"'{node.name}' is defined later, or in a branch that was not taken")
    return operation, operation.parameters


def _apply_operation(
    machine: Evaluator,
    node: tree.Call,
    operation: Operation | None,
    positional: list[Value],
    keywords: dict[str, Value],
    scope: Scope,
) -> Value:
    """Apply an operation of the table, None for a derivative or a function that drops gradients, to its arguments, of
    which lists and random variables become tensors or numbers."""
    what = f"'{node.name}'"
    for i, value in enumerate(positional):
        if isinstance(value, ProgramList) and i == _place_of_list(operation):
            joins = i == 0
            items = (None if item is None else as_tensor_or_number(item, "a tensor") for item in value.items)
            positional[i] = [as_default_dtype(item) if joins else item for item in items]
        elif isinstance(value, TENSOR_CONVERTIBLE):
            positional[i] = as_tensor_or_number(value, what)
    keywords = {
        n: as_tensor_or_number(v, what) if isinstance(v, TENSOR_CONVERTIBLE) else v for n, v in keywords.items()
    }
    if operation is None:
        from gradcli.language.interpreter.builtin_calls import differentiation

        return differentiation.call(machine, node, positional, keywords, scope)
    check_arguments(operation, positional, keywords)
    return machine.apply(node, operation.name, functools.partial(operation, **keywords), *positional)


def _place_of_list(operation: Operation | None) -> int | None:
    """The index of the parameter that takes a list (of tensors, or with None in it) as it is, or None."""
    if operation is None:
        return None
    return next((i for i, p in enumerate(operation.parameters) if p.takes_list), None)


HANDLERS: dict[type, Callable[..., Task]] = {tree.Call: _call, tree.Apply: _apply, **defined_functions.HANDLERS}
