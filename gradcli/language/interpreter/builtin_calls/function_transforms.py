"""Function transformations and control flow of JAX and PyTorch: `grad`, `vmap`, `scan` and the like."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.calculus import program_derivatives
from gradcli.errors import CallError, DifferentiationError, EvaluationError, ShapeError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.loop_policy import MOST_ROUNDS, count_of, rolled_calls, without_first
from gradcli.language.interpreter.machine import Caller, Task
from gradcli.language.interpreter.statements import loop_values
from gradcli.language.interpreter.values import FUNCTIONS, TransformedFunction, Value, as_bool, as_tensor_or_number
from gradcli.language.syntax import tree
from gradcli.primitives.axes import integer
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, moveaxis, stack
from gradcli.primitives.signature import parse_signature

if TYPE_CHECKING:
    from gradcli.language.interpreter.rolled.rolled_calls import CallLoop, RolledCalls

# Cost of collecting one part of a nested value in a list or tensor, in eighths of a step.
_PART_COST = 16

# The transformations, with their signatures.
TRANSFORMATIONS: Mapping[str, str] = {
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


# JAX's names of options by those of PyTorch, and that of the function argument by its other names.
_OPTIONS = {"in_dims": "in_axes", "out_dims": "out_axes", "fun": "f", "func": "f"}


def made(node: tree.Call, positional: Sequence[Value], given: Mapping[str, Value]) -> TransformedFunction | None:
    """The function that a call of one of `TRANSFORMATIONS` returns, or None for any other call."""
    if node.name not in TRANSFORMATIONS:
        return None
    parameters = parse_signature(TRANSFORMATIONS[node.name])
    options = {_OPTIONS.get(n, n): v for n, v in given.items()}
    function = positional[0] if positional else options.get("f")
    if not isinstance(function, FUNCTIONS):
        return None
    call_arguments.fit(node.name, parameters, positional, options)
    options |= zip((p.name for p in parameters), positional)
    options["conjugated"] = node.module.startswith("jax")
    return TransformedFunction(node.name, options.pop("f"), options)


def control_flow_task(
    node: tree.Call, caller: Caller, positional: Sequence[Value], given: Mapping[str, Value]
) -> Task | None:
    """The task of a call of `scan` and the like, or None for any other call."""
    rules = LOOPS if node.module.startswith("jax") else {} if node.module or node.receiver is not None else _OF_PYTHON
    if node.name not in rules:
        return None
    signature, rule = rules[node.name]
    call_arguments.fit(node.name, parse_signature(signature), positional, given)
    return rule(node, caller, *positional, **given)


def call(
    node: tree.SyntaxNode,
    function: TransformedFunction,
    given: Sequence[Value],
    named: Mapping[str, Value],
    caller: Caller,
) -> Task:
    """Call a transformed function at `node`. Keyword arguments are passed on to the original function."""
    if function.name == "jit":
        return (yield from caller(function.of, *given, **named))
    if function.name == "vmap":
        if named:
            raise CallError(
                f"JAX's 'vmap' goes along '{next(iter(named))}', PyTorch's hands it on as it is",
                hint="give it by position, with in_axes=None for what is the same for all",
            )
        return (yield from _mapped(function, given, caller))
    return (yield from _derivative(node, function, given, named, caller))


def _derivative(
    node: tree.SyntaxNode,
    function: TransformedFunction,
    given: Sequence[Value],
    named: Mapping[str, Value],
    caller: Caller,
) -> Task:
    argnums = function.options.get("argnums", 0.0)
    places = [integer(i, "'argnums'") for i in (argnums.items if isinstance(argnums, ProgramList) else [argnums])]
    if any(not -len(given) <= i < len(given) for i in places):
        raise CallError(f"'{function.name}' differentiates by argument {places[0]}, and {len(given)} are given")
    arguments = [*given]
    for i in places:
        arguments[i] = _by_leaves(given[i])
    value = yield from caller(function.of, *arguments, **named)
    y = as_tensor_or_number(value, f"'{function.name}'")
    if function.name in ("grad", "value_and_grad", "grad_and_value") and arrays.shape(y):
        raise DifferentiationError(
            f"'{function.name}' needs a function whose value is a number, and this has shape {list(arrays.shape(y))}",
            hint="jacobian(f) for the derivative of each element, or the sum of them",
        )
    rule = program_derivatives.hessian if function.name == "hessian" else program_derivatives.jacobian
    if function.options["conjugated"] and not arrays.is_complex(y):
        found = [_through(arguments[i], lambda x: _conjugated(rule(y, x))) for i in places]
    else:
        found = [_through(arguments[i], lambda x: rule(y, x)) for i in places]
    derivative = ProgramList(found, node.span, "tuple") if isinstance(argnums, ProgramList) else found[0]
    if function.name == "value_and_grad":
        return ProgramList([y, derivative], node.span, "tuple")
    if function.name == "grad_and_value":
        return ProgramList([derivative, y], node.span, "tuple")
    return derivative


def _conjugated(gradient: Value) -> Value:
    """A gradient in JAX's convention, dL/da - i*dL/db by z = a + i*b, from that of PyTorch."""
    if not arrays.is_complex(gradient):
        return gradient
    # Loaded on demand: few programs have complex numbers.
    from gradcli.primitives.entries.elementwise.complex_numbers import conj

    return conj(gradient)


def _by_leaves(value: Value) -> Value:
    """An argument with every tensor in it tracked for differentiation."""
    return _through(value, lambda v: program_derivatives.tracked(as_tensor_or_number(v, "what is differentiated by")))


def _through(value: Value, rule: Callable[[Value], Value]) -> Value:
    limits.charge_steps(_PART_COST)
    if isinstance(value, ProgramList):
        return ProgramList([_through(v, rule) for v in value.items], value.span, value.made)
    return rule(value)


def _mapped(function: TransformedFunction, given: Sequence[Value], caller: Caller) -> Task:
    axes = function.options.get("in_axes", 0.0)
    chosen = axes.items if isinstance(axes, ProgramList) else [axes] * len(given)
    if len(chosen) != len(given):
        raise CallError(f"'vmap' has {len(chosen)} axes for {len(given)} arguments")
    tensors = [
        v if a is None else moveaxis(as_tensor_or_number(v, "'vmap'"), integer(a, "an axis"), 0)
        for v, a in zip(given, chosen)
    ]
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
    """Results of the same structure, stacked along a new axis."""
    limits.charge_steps(_PART_COST)
    if rows and isinstance(rows[0], ProgramList):
        columns = zip(*(row.items for row in rows))
        return ProgramList([_stacked(column, axis) for column in columns], rows[0].span, rows[0].made)
    return stack([as_tensor_or_number(row, "a result") for row in rows], integer(axis, "an axis"))


# --- control flow of jax.lax


def _cond(node: tree.Call, caller: Caller, pred: Value, true_fun: Value, false_fun: Value, *operands: Value) -> Task:
    return (yield from caller(true_fun if as_bool(pred, node) else false_fun, *operands))


def _fori_loop(node: tree.Call, caller: Caller, lower: Value, upper: Value, body_fun: Value, init_val: Value) -> Task:
    state = init_val
    counters = range(integer(lower, "a bound"), integer(upper, "a bound"))
    for number, i in enumerate(loop_values(counters, node.span)):
        if number in _ROLLED_AFTER:
            rolled = _rolled(
                caller, counters[number:], number, state,
                lambda loop, carry: (_called(caller, body_fun, loop.counter, carry), None),
            )  # fmt: skip
            if rolled is not None:
                return rolled.state
        state = yield from caller(body_fun, i, state)
    return state


def _while_loop(node: tree.Call, caller: Caller, cond_fun: Value, body_fun: Value, init_val: Value) -> Task:
    def one_round(_loop: CallLoop, carry: Value) -> tuple[Value, Value] | None:
        goes_on = as_bool(_called(caller, cond_fun, carry), node)
        return (_called(caller, body_fun, carry), None) if goes_on else None

    state, rounds = init_val, 0
    while True:
        if not rounds & (rounds - 1):
            # Tried after 0, 1, 2, 4, 8, … rounds, as those of `while`.
            rolled = _rolled(caller, None, rounds, state, one_round)
            if rolled is not None:
                return rolled.state
        if not as_bool((yield from caller(cond_fun, state)), node, of_loop=True):
            return state
        rounds += 1
        limits.charge_steps()
        state = yield from caller(body_fun, state)


def _scan(node: tree.Call, caller: Caller, f: Value, init: Value, xs: Value = None, length: Value = None) -> Task:
    carry, ys = init, list[Value]()
    along, count = None, None
    for number, row in enumerate(_rows_of(node, xs, length)):
        if number in _ROLLED_AFTER:
            if number == 0:
                along = _sequences(xs)
                count = _common_length(along, None if length is None else integer(length, "'length'"))
            rolled = None if count is None else _rolled(
                caller, range(count - number), number, carry,
                functools.partial(_scan_round, caller, f, _rest(along, number)),
            )  # fmt: skip
            if rolled is not None:
                return ProgramList([rolled.state, _after(ys, rolled.results)], node.span, "tuple")
        carry, y = _carry_and_result((yield from caller(f, carry, row)))
        ys.append(y)
    return ProgramList([carry, None if not ys or ys[0] is None else _stacked(ys, 0.0)], node.span, "tuple")


def _scan_round(caller: Caller, f: Value, along: Value, loop: CallLoop, carry: Value) -> tuple[Value, Value]:
    return _carry_and_result(_called(caller, f, carry, _row(loop, along)))


def _carry_and_result(result: Value) -> tuple[Value, Value]:
    if not isinstance(result, ProgramList) or len(result.items) != 2:
        raise EvaluationError("the function of 'scan' gives two values: what is carried on, and a result")
    carry, y = result.items
    return carry, y


# --- loops as one equation

# Rounds after which running the rest as one equation is tried: the first may bring values to the types and shapes that
# the others pass on.
_ROLLED_AFTER = (0, 1)


def _rolled(
    caller: Caller, counters: range | None, rounds_so_far: int, state: Value, one_round: Callable[..., Any]
) -> RolledCalls | None:
    """The rest of a loop as one equation, see `gradcli.language.interpreter.rolled.rolled_calls`; None where it does not
    pay."""
    module = rolled_calls(caller.machine, caller.node, None if counters is None else len(counters), rounds_so_far)
    if module is None:
        return None
    ends = counters is None
    counters = range(MOST_ROUNDS) if counters is None else counters
    found: RolledCalls | None = module.run(caller.machine, caller.node, counters, state, one_round, ends=ends)
    return found


def _sequences(xs: Value) -> Value:
    """The sequences that `scan` iterates over, with lists of numbers as tensors."""
    if isinstance(xs, ProgramList) and xs.made == "tuple":
        return ProgramList(map(_sequences, xs.items), xs.span, "tuple")
    return as_tensor_or_number(xs, "'scan'") if isinstance(xs, ProgramList) else xs


def _common_length(along: Value, length: int | None) -> int | None:
    """The number of rows that all sequences of `scan` have, None where they differ."""
    found = {*_lengths(along), *([] if length is None else [length])}
    return found.pop() if len(found) == 1 else None


def _lengths(along: Value) -> Iterator[int]:
    if isinstance(along, ProgramList):
        for part in along.items:
            yield from _lengths(part)
    elif along is not None:
        yield count_of(along)


def _rest(along: Value, number: int) -> Value:
    """The rest of the sequences of `scan` after the first rounds."""
    if isinstance(along, ProgramList):
        return ProgramList([_rest(part, number) for part in along.items], along.span, "tuple")
    return without_first(along, number)


def _row(loop: CallLoop, along: Value) -> Value:
    """The arguments of the function of `scan` in a traced round."""
    if isinstance(along, ProgramList):
        return ProgramList([_row(loop, part) for part in along.items], along.span, "tuple")
    return None if along is None else loop.item(along)


def _after(before: Sequence[Value], results: Value) -> Value:
    """The results of rounds that were run, if there are any, and those of the rest, along one axis."""
    if not before or results is None:
        return results
    return _joined(_stacked(before, 0.0), results)


def _joined(one: Value, other: Value) -> Value:
    if isinstance(one, ProgramList):
        return ProgramList([_joined(a, b) for a, b in zip(one.items, other.items)], one.span, one.made)
    return concat([one, other], 0)


def _called(caller: Caller, function: Value, *given: Value) -> Value:
    """The value of a call, for a round that is traced."""
    return caller.machine.drive(caller(function, *given), caller.node, caller.scope)


def _rows_of(node: tree.Call, xs: Value, length: Value) -> Iterator[Value]:
    """The values that `scan` iterates over: rows of a tensor, of several in parallel, or None, `length` times."""
    if xs is None and length is None:
        raise CallError(
            "'scan' needs 'xs' or 'length'", hint=call_arguments.usage("scan", parse_signature(LOOPS["scan"][0]))
        )
    counted = [] if length is None else [loop_values(range(integer(length, "'length'")), node.span)]
    rows = [] if xs is None else [_beside_each_other(xs, node)]
    try:
        for row in zip(*rows, *counted, strict=True):
            yield None if xs is None else row[0]
    except ValueError:
        raise ShapeError("what 'scan' goes along is not of one length", span=node.span) from None


def _beside_each_other(xs: Value, node: tree.Call) -> Iterator[Value]:
    if isinstance(xs, ProgramList) and xs.made == "tuple":
        rows = zip(*(_beside_each_other(x, node) for x in xs.items), strict=True)
        return (ProgramList(row, xs.span, "tuple") for row in rows)
    if isinstance(xs, ProgramList) and any(
        isinstance(x, ProgramList) or arrays.shape(as_tensor_or_number(x, "'scan'")) for x in xs.items
    ):
        raise EvaluationError(
            "JAX goes along the tensors in a list beside each other, and a loop from one to the next",
            hint="write (a, b) for the first, jnp.array([a, b]) for the second",
            span=node.span,
        )
    return loop_values(xs, node.span)


LOOPS: Mapping[str, tuple[str, Callable[..., Task]]] = {
    "cond": ("pred, true_fun, false_fun, *operands", _cond),
    "fori_loop": ("lower, upper, body_fun, init_val", _fori_loop),
    "while_loop": ("cond_fun, body_fun, init_val", _while_loop),
    "scan": ("f, init, xs=None, length=None", _scan),
}


def _map(node: tree.Call, caller: Caller, f: Value, *columns: Value) -> Task:
    rolled = _rolled(
        caller, range(min(map(count_of, columns), default=0)), 0, None,
        lambda loop, _: (None, _called(caller, f, *map(loop.item_of, columns))),
    )  # fmt: skip
    made = None if rolled is None else rolled.as_list(node.span)
    if made is not None:
        return made
    found = []
    for row in zip(*(loop_values(column, node.span) for column in columns)):
        found.append((yield from caller(f, *row)))
    return ProgramList(found, node.span, "generated")


_OF_PYTHON: Mapping[str, tuple[str, Callable[..., Task]]] = {"map": ("f, *items", _map)}
