"""Calls: of primitives, of derivatives, of Python's own functions, and of functions that the program defines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import inside
from gradcli.errors import CallError, DifferentiationError, UnknownNameError
from gradcli.language import arguments, dialects, functions
from gradcli.language import scope as scope_of_program
from gradcli.language.cells import Cell
from gradcli.language.lists import Items, in_dtype
from gradcli.language.machine import Machine, Scope, Task
from gradcli.language.syntax import tree
from gradcli.language.values import FUNCTIONS, Builtin, Transformed, Value, check_arguments, number
from gradcli.primitives.arithmetic import multiply
from gradcli.primitives.primitive import Operation
from gradcli.primitives.reductions import sum_
from gradcli.primitives.signature import Parameter, parse_signature, rename


def _call(machine: Machine, node: tree.Call, scope: Scope) -> Task:
    if scope_of_program.is_update(node):
        # What few programs use is loaded by those that do.
        from gradcli.language.updates import updated

        return (yield from updated(node))
    function = _own(machine, node, scope)
    positional, keywords = yield from _arguments(tree.positional(node), node.keywords)
    if function is not None:
        return (yield from _invoke(machine, node, function, positional, keywords, scope))
    if node.receiver is not None and isinstance(positional[0], Items) and node.name in scope_of_program.LIST_METHODS:
        from gradcli.language import python_functions

        kept = {name: machine.kept(value) for name, value in keywords.items()}
        return python_functions.method(node, positional[0], [*map(machine.kept, positional[1:])], kept)
    return (yield from _call_named(machine, node, positional, keywords, scope))


def _apply(machine: Machine, node: tree.Apply, scope: Scope) -> Task:
    function = yield node.function
    if not isinstance(function, FUNCTIONS):
        raise CallError(
            "only a function can be called", hint="write '*' before '(' to multiply", span=node.function.span
        )
    positional, keywords = yield from _arguments(node.arguments, node.keywords)
    return (yield from _invoke(machine, node, function, positional, keywords, scope))


def _arguments(
    given: Sequence[tree.Expression], named: Sequence[tree.Keyword]
) -> Generator[Any, Value, tuple[list[Value], dict[str, Value]]]:
    """The values of the arguments of a call, by position and by name."""
    positional, keywords = [], {}
    for argument in given:
        positional.append((yield argument))
    for keyword in named:
        keywords[keyword.name] = yield keyword.value
    return positional, keywords


def _own(machine: Machine, node: tree.Call, scope: Scope) -> Value:
    """The function that a name of the program stands for, None where it stands for none."""
    if node.module:
        return None
    found = machine.find(node.name, scope)
    value = None if found is None else found.names[node.name]
    return value if isinstance(value, FUNCTIONS) else None


def _invoke(
    machine: Machine,
    node: tree.Call | tree.Apply,
    function: Value,
    positional: Sequence[Value],
    keywords: Mapping[str, Value],
    scope: Scope,
) -> Task:
    """Call a function that is a value."""
    if isinstance(function, Builtin):
        span = node.name_span if isinstance(node, tree.Call) else node.function.span
        named = tree.Call(node.span, function.name, span, None, node.arguments, node.keywords, function.module)
        return (yield from _call_named(machine, named, [*positional], dict(keywords), scope))
    if isinstance(function, Transformed):
        from gradcli.language import transforms

        return (yield from transforms.call(node, function, positional, keywords, _caller(machine, node, scope)))
    parameters = functions.signature(function)
    _fit(node, function.name, parameters, positional, keywords)
    given = dict(zip((p.name for p in parameters), positional)) | dict(keywords)
    if isinstance(node, tree.Call):
        machine.provenance.enter(node)
    result = yield from functions.call(machine, function, scope, given)
    if isinstance(node, tree.Call):
        machine.provenance.leave()
    return result


def _caller(machine: Machine, node: tree.Call | tree.Apply, scope: Scope) -> Callable[..., Task]:
    """What calls functions of the program with values, at the place of `node`."""

    def call(function: Value, /, *given: Value, **named: Value) -> Task:
        if not isinstance(function, FUNCTIONS):
            raise CallError("a function is needed here", hint="lambda x: … makes one", span=node.span)
        limits.charge_steps()
        return (yield from _invoke(machine, node, function, given, named, scope))

    return call


def _call_named(
    machine: Machine, node: tree.Call, positional: list[Value], given: dict[str, Value], scope: Scope
) -> Task:
    """Call a function of the language by its name."""
    if node.module == "torch.autograd" and node.name == "grad":
        return _gradient(machine, node, positional, given)
    if node.name in scope_of_program.TRANSFORMS or (positional and isinstance(positional[0], FUNCTIONS)):
        from gradcli.language import transforms

        made = transforms.made(node, positional, given)
        if made is not None:
            return made
        task = transforms.loop(node, _caller(machine, node, scope), positional, given)
        if task is not None:
            return (yield from task)
    if node.name in scope_of_program.PYTHON_FUNCTIONS:
        from gradcli.language import python_functions

        function = python_functions.find(node)
        if function is not None:
            return function(*positional, **given)
    operation, parameters = _meaning(machine, node)
    if operation is not None and (
        len(positional) > 1 or any(isinstance(v, Items) for v in positional[:1]) or machine.imports
    ):
        from gradcli.language import forms

        compute = forms.of_operands(machine, node, operation, positional, given)
        if compute is not None:
            return machine.apply(node, operation.name, compute)
    keywords: dict[str, Value] = {}
    for keyword, value in given.items():
        name = rename(keyword, parameters)
        if name in keywords:
            raise CallError(f"'{node.name}' got '{name}' twice", span=node.span)
        keywords[name] = value
    _spread(parameters, positional, keywords)
    _fit(node, node.name, parameters, positional, keywords)
    first = positional[0] if positional else None
    if isinstance(first, Cell) and node.name in _VIEWS:
        rest = positional[1:]
        return first.view(lambda x: _call_builtin(machine, node, operation, [x, *rest], keywords))
    machine.provenance.enter(node)
    result = _call_builtin(machine, node, operation, positional, keywords)
    machine.provenance.leave()
    return result


def _spread(parameters: Sequence[Parameter], positional: list[Value], keywords: dict[str, Value]) -> None:
    """Have what is given by name for a parameter such as `*shape` stand in its place, as in `zeros(shape=(2, 3))`."""
    for place, parameter in enumerate(parameters):
        if parameter.variadic and parameter.name in keywords and len(positional) == place:
            positional.append(keywords.pop(parameter.name))


def _fit(
    node: tree.SyntaxNode,
    name: str,
    parameters: Sequence[Parameter],
    positional: Sequence[Value],
    keywords: Mapping[str, Value],
) -> None:
    try:
        arguments.fit(name, parameters, positional, keywords)
    except CallError as error:
        error.locate(node.span)
        raise


def _meaning(machine: Machine, node: tree.Call) -> tuple[Operation | None, tuple[Parameter, ...]]:
    """The entry that is called, None for what the language itself provides, and its parameters."""
    if not node.module and node.name in scope_of_program.DERIVATIVES:
        return None, parse_signature(scope_of_program.DERIVATIVES[node.name])
    if node.name in scope_of_program.DETACH:
        return None, parse_signature("x")
    operation = dialects.function(node, machine.dialect)
    if operation is None and node.name in scope_of_program.TRANSFORMS:
        raise CallError(
            f"'{node.name}' needs a function of the program",
            hint="f(x) = … defines one, lambda x: … is one",
            span=node.span,
        )
    if operation is None:
        raise UnknownNameError(f"'{node.name}' is defined later, or in a branch that was not taken")
    return operation, operation.parameters


def _call_builtin(
    machine: Machine,
    node: tree.Call,
    operation: Operation | None,
    positional: list[Value],
    keywords: dict[str, Value],
) -> Value:
    what = f"'{node.name}'"
    joins = operation is not None and operation.signature.startswith("tensors")
    for i, value in enumerate(positional):
        if isinstance(value, Items) and joins and i == 0:
            positional[0] = [in_dtype(number(item, "a tensor")) for item in value.items]
        elif isinstance(value, _READ):
            positional[i] = number(value, what)
    keywords = {n: number(v, what) if isinstance(v, _READ) else v for n, v in keywords.items()}
    if operation is None and node.name in scope_of_program.DERIVATIVES:
        return _derivative(machine, node, positional, keywords)
    if operation is None:
        return inside.detach(number(positional[0], what))
    check_arguments(operation, positional, keywords)
    return machine.apply(node, operation.name, functools.partial(operation, **keywords), *positional)


# Functions whose result shares its elements with their operand, as NumPy and PyTorch have them.
_VIEWS = frozenset(
    {"reshape", "view", "transpose", "permute", "swapaxes", "moveaxis", "squeeze", "unsqueeze", "expand_dims"}
    | {"ravel", "broadcast_to", "expand", "diagonal"}
)
# What stands for a tensor that is read where a function needs it.
_READ = (Items, Cell, range)


def _derivative(machine: Machine, node: tree.Call, positional: list[Value], keywords: dict[str, Value]) -> Value:
    names = ("y", "x", "n") if len(positional) < 4 and not _is_variable(machine, node, 2) else ("y", "x")
    named = dict(zip(names, positional)) | keywords
    _check_target(tree.positional(node)[1:2] or [k.value for k in node.keywords if k.name == "x"], node, named["x"])
    value = machine.apply(node, node.name, functools.partial(getattr(inside, node.name), **named))
    for place in range(len(names), len(positional)):
        _check_target(tree.positional(node)[place : place + 1], node, positional[place])
        if place == 2 and not inside.depends(named["y"], positional[place]):
            raise _order_or_variable(machine, node)
        value = machine.apply(node, node.name, functools.partial(inside.diff, value, positional[place]))
    return value


def _order_or_variable(machine: Machine, node: tree.Call) -> DifferentiationError:
    """The error for a third argument that may be meant as the order, as what is differentiated does not depend on it."""
    y, x, n = (machine.program.source[a.span.start : a.span.end] for a in tree.positional(node)[:3])
    return DifferentiationError(
        f"'{n}' is an input that {y} does not depend on, and not the order of 'diff'",
        hint=f"diff({y}, {x}, n={n}) takes it as the order",
        span=tree.positional(node)[2].span,
    )


# What PyTorch frees and what it keeps is all kept here.
_GRADIENT = "outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None"


def _gradient(machine: Machine, node: tree.Call, positional: Sequence[Value], given: Mapping[str, Value]) -> Items:
    """`torch.autograd.grad(outputs, inputs)`: a gradient for each input, through which one can differentiate again."""
    parameters = parse_signature(_GRADIENT)
    _fit(node, node.name, parameters, positional, given)
    named = dict(zip((p.name for p in parameters), positional)) | dict(given)
    y, weights = number(named["outputs"], "'grad'"), named.get("grad_outputs")
    if weights is not None:
        y = sum_(multiply(y, number(weights, "'grad_outputs'")))
    if arrays.shape(y):
        raise DifferentiationError(
            f"'grad' needs a number to differentiate, and this has shape {list(arrays.shape(y))}",
            hint="grad_outputs=torch.ones_like(y), or the gradient of y.sum()",
        )
    wanted = named["inputs"].items if isinstance(named["inputs"], Items) else [named["inputs"]]
    values = [number(x, "'grad'") for x in wanted]
    if not all(isinstance(x, Tensor) for x in values):
        raise DifferentiationError(
            "'grad' differentiates by names that the program was given or assigned",
            hint="name what is differentiated by first: u = …; torch.autograd.grad(y, u)[0]",
        )
    found = [machine.apply(node, "grad", functools.partial(inside.jacobian, y, x)) for x in values]
    return Items(found, node.span, "tuple")


def _is_variable(machine: Machine, node: tree.Call, place: int) -> bool:
    """Whether an argument by position names an input, which is never the order of a derivative."""
    given = tree.positional(node)[place : place + 1]
    return any(isinstance(a, tree.Name) and a.id in machine.inputs for a in given)


def _check_target(targets: Sequence[tree.Expression], node: tree.Call, value: Value) -> None:
    if not isinstance(targets[0], tree.Name) or not isinstance(value, Tensor):
        raise DifferentiationError(
            f"'{node.name}' differentiates by a name that the program was given or assigned, and this is none",
            hint=f"name it first: u = …; {node.name}(y, u)",
            span=targets[0].span,
        )


HANDLERS: dict[type, Callable[..., Task]] = {tree.Call: _call, tree.Apply: _apply, **functions.HANDLERS}
