"""Functions of functions, as JAX and PyTorch have them: `grad`, `vmap`, `scan` and their like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.calculus import inside
from gradcli.errors import CallError, DifferentiationError, EvaluationError
from gradcli.language import arguments
from gradcli.language.lists import Items
from gradcli.language.machine import Task
from gradcli.language.statements import elements
from gradcli.language.syntax import tree
from gradcli.language.values import Transformed, Value, number, truth
from gradcli.primitives.axes import whole
from gradcli.primitives.indexing import index
from gradcli.primitives.shape import moveaxis, stack
from gradcli.primitives.signature import parse_signature

# Calls a function of the program with values: a task.
Caller = Callable[..., Task]


# What makes a function of a function, with the options that it takes.
MAKERS: Mapping[str, str] = {
    "grad": "f, argnums=0",
    "value_and_grad": "f, argnums=0",
    "grad_and_value": "f, argnums=0",
    "jacobian": "f, argnums=0",
    "jacfwd": "f, argnums=0",
    "jacrev": "f, argnums=0",
    "hessian": "f, argnums=0",
    "vmap": "f, in_axes=0, out_axes=0",
    "jit": "f",
}


# What PyTorch calls options of JAX's.
_OPTIONS = {"in_dims": "in_axes", "out_dims": "out_axes"}


def made(node: tree.Call, positional: Sequence[Value], given: Mapping[str, Value]) -> Transformed:
    """The function that one of `MAKERS` makes of the first argument."""
    parameters = parse_signature(MAKERS[node.name])
    options = {_OPTIONS.get(n, n): v for n, v in given.items()}
    arguments.fit(node.name, parameters, positional, options)
    return Transformed(node.name, positional[0], dict(zip([p.name for p in parameters[1:]], positional[1:])) | options)


def loop(node: tree.Call, caller: Caller, positional: Sequence[Value], given: Mapping[str, Value]) -> Task | None:
    """What a loop with functions of the program does, None where a call is none."""
    if node.name in LOOPS and node.module.startswith("jax"):
        signature, rule = LOOPS[node.name]
        arguments.fit(node.name, parse_signature(signature), positional, given)
        return rule(node, caller, *positional, **given)
    if node.name == "map" and not node.module and node.receiver is None and len(positional) > 1:
        return _map(node, caller, *positional)
    return None


def call(node: tree.SyntaxNode, function: Transformed, given: Sequence[Value], caller: Caller) -> Task:
    """The value of a function that was made of another one, called at `node`."""
    if function.name == "jit":
        return (yield from caller(function.of, *given))
    if function.name == "vmap":
        return (yield from _mapped(function, given, caller))
    return (yield from _derivative(node, function, given, caller))


def _derivative(node: tree.SyntaxNode, function: Transformed, given: Sequence[Value], caller: Caller) -> Task:
    argnums = function.options.get("argnums", 0.0)
    places = [whole(i, "'argnums'") for i in (argnums.items if isinstance(argnums, Items) else [argnums])]
    if any(not -len(given) <= i < len(given) for i in places):
        raise CallError(f"'{function.name}' differentiates by argument {places[0]}, and {len(given)} are given")
    arguments = [*given]
    for i in places:
        arguments[i] = _by_leaves(given[i])
    value = yield from caller(function.of, *arguments)
    y = number(value, f"'{function.name}'")
    if function.name in ("grad", "value_and_grad", "grad_and_value") and arrays.shape(y):
        raise DifferentiationError(
            f"'{function.name}' needs a function whose value is a number, and this has shape {list(arrays.shape(y))}",
            hint="jacobian(f) for the derivative of each element, or the sum of them",
        )
    rule = inside.hessian if function.name == "hessian" else inside.jacobian
    found = [_through(arguments[i], lambda x: rule(y, x)) for i in places]
    derivative = Items(found, node.span, "tuple") if isinstance(argnums, Items) else found[0]
    if function.name == "value_and_grad":
        return Items([y, derivative], node.span, "tuple")
    if function.name == "grad_and_value":
        return Items([derivative, y], node.span, "tuple")
    return derivative


def _by_leaves(value: Value) -> Value:
    """An argument with every tensor in it as one that is differentiated by."""
    if isinstance(value, Items):
        return Items([_by_leaves(v) for v in value.items], value.span, value.made)
    return inside.tracked(number(value, "what is differentiated by"))


def _through(value: Value, rule: Callable[[Value], Value]) -> Value:
    if isinstance(value, Items):
        return Items([_through(v, rule) for v in value.items], value.span, value.made)
    return rule(value)


def _mapped(function: Transformed, given: Sequence[Value], caller: Caller) -> Task:
    axes = function.options.get("in_axes", 0.0)
    chosen = axes.items if isinstance(axes, Items) else [axes] * len(given)
    if len(chosen) != len(given):
        raise CallError(f"'vmap' has {len(chosen)} axes for {len(given)} arguments")
    tensors = [v if a is None else moveaxis(number(v, "'vmap'"), whole(a, "an axis"), 0) for v, a in zip(given, chosen)]
    sizes = {arrays.shape(t)[0] for t, a in zip(tensors, chosen) if a is not None}
    if len(sizes) != 1:
        raise EvaluationError("'vmap' goes along axes of one size", hint="in_axes=None for what is the same for all")
    rows = []
    for i in range(sizes.pop()):
        limits.charge_steps()
        row = [t if a is None else index(t, i) for t, a in zip(tensors, chosen)]
        rows.append((yield from caller(function.of, *row)))
    return _stacked(rows, function.options.get("out_axes", 0.0))


def _stacked(rows: Sequence[Value], axis: Value) -> Value:
    """Results of the same form as one, with an axis more."""
    if rows and isinstance(rows[0], Items):
        columns = zip(*(row.items for row in rows))
        return Items([_stacked(column, axis) for column in columns], rows[0].span, rows[0].made)
    return stack([number(row, "a result") for row in rows], whole(axis, "an axis"))


# --- control flow of jax.lax


def _cond(node: tree.Call, caller: Caller, pred: Value, true_fun: Value, false_fun: Value, *operands: Value) -> Task:
    return (yield from caller(true_fun if truth(pred, node) else false_fun, *operands))


def _fori_loop(_node: tree.Call, caller: Caller, lower: Value, upper: Value, body_fun: Value, init_val: Value) -> Task:
    state = init_val
    for i in range(whole(lower, "a bound"), whole(upper, "a bound")):
        limits.charge_steps()
        state = yield from caller(body_fun, float(i), state)
    return state


def _while_loop(node: tree.Call, caller: Caller, cond_fun: Value, body_fun: Value, init_val: Value) -> Task:
    state = init_val
    while truth((yield from caller(cond_fun, state)), node, of_loop=True):
        limits.charge_steps()
        state = yield from caller(body_fun, state)
    return state


def _scan(node: tree.Call, caller: Caller, f: Value, init: Value, xs: Value = None, length: Value = None) -> Task:
    if xs is None:
        rows: Sequence[Value] = [None] * whole(length, "'length'")
    elif isinstance(xs, Items) and xs.made == "tuple":
        columns = [[*elements(x, xs.span)] for x in xs.items]
        rows = [Items(row, xs.span, "tuple") for row in zip(*columns)]
    else:
        rows = [*elements(xs, node.span)]
    carry, ys = init, []
    for row in rows:
        limits.charge_steps()
        result = yield from caller(f, carry, row)
        if not isinstance(result, Items) or len(result.items) != 2:
            raise EvaluationError("the function of 'scan' gives two values: what is carried on, and a result")
        carry, y = result.items
        ys.append(y)
    stacked = None if not ys or ys[0] is None else _stacked(ys, 0.0)
    return Items([carry, stacked], node.span, "tuple")


LOOPS: Mapping[str, tuple[str, Callable[..., Task]]] = {
    "cond": ("pred, true_fun, false_fun, *operands", _cond),
    "fori_loop": ("lower, upper, body_fun, init_val", _fori_loop),
    "while_loop": ("cond_fun, body_fun, init_val", _while_loop),
    "scan": ("f, init, xs, length=None", _scan),
}


def _map(node: tree.Call, caller: Caller, f: Value, *columns: Value) -> Task:
    rows = zip(*([*elements(column, node.span)] for column in columns))
    found = []
    for row in rows:
        limits.charge_steps()
        found.append((yield from caller(f, *row)))
    return Items(found, node.span, "generated")
