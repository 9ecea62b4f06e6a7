"""Calls by which a program takes derivatives: `diff`, `jacobian`, `jvp`, `detach`, `torch.autograd.grad` and so on."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import program_derivatives
from gradcli.errors import DifferentiationError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator, Scope
from gradcli.language.interpreter.values import Value, as_tensor_or_number
from gradcli.language.names.evaluator_functions import DERIVATIVES, DETACH
from gradcli.language.syntax import tree
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.signature import parse_signature


def call(
    machine: Evaluator, node: tree.Call, positional: list[Value], keywords: dict[str, Value], scope: Scope
) -> Value:
    """The value of a call of one of `DERIVATIVES` or `DETACH`, whose arguments fit its signature."""
    if node.name in DETACH:
        return program_derivatives.detach(as_tensor_or_number([*positional, *keywords.values()][0], f"'{node.name}'"))
    return _derivative(machine, node, positional, keywords, scope)


def _derivative(
    machine: Evaluator, node: tree.Call, positional: list[Value], keywords: dict[str, Value], scope: Scope
) -> Value:
    names = tuple(p.name for p in parse_signature(DERIVATIVES[node.name]) if not p.variadic)
    if node.name == "diff" and (len(positional) > 3 or _is_variable(machine, node, scope)):
        names = names[:2]
    named = dict(zip(names, positional)) | keywords
    named |= {n: as_tensor_or_number(named[n], f"'{node.name}'") for n in ("y", "v") if n in named}
    _check_target(tree.positional(node)[1:2] or [k.value for k in node.keywords if k.name == "x"], node, named["x"])
    value = machine.apply(node, node.name, functools.partial(getattr(program_derivatives, node.name), **named))
    for place in range(len(names), len(positional)):
        _check_target(tree.positional(node)[place : place + 1], node, positional[place])
        if place == 2 and not program_derivatives.depends(named["y"], positional[place]):
            raise _order_or_variable(machine, node)
        value = machine.apply(node, node.name, functools.partial(program_derivatives.diff, value, positional[place]))
    return value


def _order_or_variable(machine: Evaluator, node: tree.Call) -> DifferentiationError:
    """The error for a third argument that y does not depend on, and that may be meant as the order."""
    y, x, n = (machine.program.source[a.span.start : a.span.end] for a in tree.positional(node)[:3])
    return DifferentiationError(
        f"'{n}' is an input that {y} does not depend on, and not the order of 'diff'",
        hint=f"diff({y}, {x}, n={n}) takes it as the order",
        span=tree.positional(node)[2].span,
    )


# The options on freeing the graph are accepted and ignored: it is always kept.
_GRADIENT = "outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None"


def gradient(
    machine: Evaluator, node: tree.Call, positional: Sequence[Value], given: Mapping[str, Value]
) -> ProgramList:
    """`torch.autograd.grad(outputs, inputs)`: a gradient for each input, which can be differentiated again."""
    parameters = parse_signature(_GRADIENT)
    call_arguments.fit(node.name, parameters, positional, given)
    named = dict(zip((p.name for p in parameters), positional)) | dict(given)
    y, weights = as_tensor_or_number(named["outputs"], "'grad'"), named.get("grad_outputs")
    if arrays.is_complex(y):
        y = _real_product(y, weights)
    elif weights is not None:
        y = sum_(multiply(y, as_tensor_or_number(weights, "'grad_outputs'")))
    if arrays.shape(y):
        raise DifferentiationError(
            f"'grad' needs a number to differentiate, and this has shape {list(arrays.shape(y))}",
            hint="grad_outputs=torch.ones_like(y), or the gradient of y.sum()",
        )
    wanted = named["inputs"].items if isinstance(named["inputs"], ProgramList) else [named["inputs"]]
    values = [as_tensor_or_number(x, "'grad'") for x in wanted]
    if not all(isinstance(x, Tensor) for x in values):
        raise DifferentiationError(
            "'grad' differentiates by names that the program was given or assigned",
            hint="name what is differentiated by first: u = …; torch.autograd.grad(y, u)[0]",
        )
    found = [machine.apply(node, "grad", functools.partial(program_derivatives.jacobian, y, x)) for x in values]
    return ProgramList(found, node.span, "tuple")


def _real_product(y: Value, weights: Value) -> Value:
    """The real number whose gradient PyTorch gives for complex outputs, real(sum(conj(weights)*y))."""
    # Loaded on demand: few programs have complex numbers.
    from gradcli.primitives.entries.elementwise.complex_numbers import conj, real

    if weights is None:
        raise DifferentiationError(
            "grad can be implicitly created only for real scalar outputs, and these are complex",
            hint="grad_outputs=… weights them, diff(y, z) is the derivative of a holomorphic y",
        )
    return real(sum_(multiply(y, conj(as_tensor_or_number(weights, "'grad_outputs'")))))


def _is_variable(machine: Evaluator, node: tree.Call, scope: Scope) -> bool:
    """Return whether the third positional argument names an input, which is never the order of a derivative."""
    return any(isinstance(a, tree.Name) and machine.is_input(a.id, scope) for a in tree.positional(node)[2:3])


def _check_target(targets: Sequence[tree.Expression], node: tree.Call, value: Value) -> None:
    if not isinstance(targets[0], tree.Name) or not isinstance(value, Tensor):
        raise DifferentiationError(
            f"'{node.name}' differentiates by a name that the program was given or assigned, and this is none",
            hint=f"name it first: u = …; {node.name}(y, u)",
            span=targets[0].span,
        )
