"""Calls of functionals: functions of functions, such as `integrate`, whose values are found by iteration."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import current_span
from gradcli.errors import CallError, NotRecordableError
from gradcli.functionals import functional_calls
from gradcli.functionals.limit import limit
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Caller, Evaluator, Scope, Task
from gradcli.language.interpreter.provenance import UNKNOWN
from gradcli.language.interpreter.values import FUNCTIONS, TENSOR_CONVERTIBLE, Closure, Value, as_tensor_or_number
from gradcli.language.names.evaluator_functions import FUNCTIONALS
from gradcli.language.names.resolution import resolve
from gradcli.language.stable.one_variable import ExpressionReader
from gradcli.language.syntax import tree
from gradcli.language.syntax.bound_variables import BINDING
from gradcli.loops.body_tracing import RoundTrace, Traced
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, concrete
from gradcli.primitives.conversions import permuted, reshaped
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.signature import SignatureParameter, parse_signature

# Calls a function of the program, with the values of its arguments.
Function = Callable[..., Any]
# The number of elements of the largest array of which all become inputs of the trace.
_MOST = 100


def call(
    machine: Evaluator,
    node: tree.Call,
    caller: Caller,
    scope: Scope,
    positional: Sequence[Value],
    given: Mapping[str, Value],
) -> Value:
    """The value of a call of one of FUNCTIONALS. Raises CallError where an argument is not a function."""
    parameters = parse_signature(FUNCTIONALS[node.name])
    call_arguments.fit(node.name, parameters, positional, given)
    alone = [*itertools.takewhile(lambda p: not p.variadic, parameters)]
    named = dict(zip((p.name for p in alone), positional)) | dict(given)
    definitions: Mapping[str, tree.Expression] = {}
    if node.name == "limit" and len(node.arguments) > 1 and isinstance(named.get("x"), Kind):
        reader = ExpressionReader(machine.program, resolve(machine.program).functions, machine.inputs, ())
        named["x"] = _computed_point(node.arguments[1], reader, scope) or named["x"]
        definitions = _definitions(node, reader)
    traced = _TracedCalls(machine, node, caller, scope, definitions)
    arguments = {name: traced.argument(value) for name, value in named.items()}
    if not callable(next(iter(arguments.values()))):
        raise _without_function(node)
    for parameter in parameters[len(alone) : len(alone) + 1]:
        arguments[parameter.name] = [traced.argument(value) for value in positional[len(alone) :]]
    return machine.apply(node, node.name, functools.partial(_RULES[node.name], node, **arguments))


def _computed_point(point: tree.Expression, reader: ExpressionReader, scope: Scope) -> Value:
    """A function that computes the point of a limit, if that is a name which stands for an expression."""
    if not isinstance(point, tree.Name):
        return None
    definition = reader.definition(point)
    if definition is None:
        return None
    # The name of the variable, which the expression does not read, is none that a program can have.
    parameter = tree.Parameter(point.span, "limit's variable", None, False)
    made = tree.Lambda(point.span, (parameter,), definition)
    return Closure(made, scope, (SignatureParameter(parameter.name, None, False, False),), {}, ())


def _definitions(node: tree.Call, reader: ExpressionReader) -> dict[str, tree.Expression]:
    """The names that a limit reads, also through others, and that stand for expressions, in the order in which they are
    assigned."""
    found: dict[str, tree.Expression] = {}
    waiting = [*tree.walk(node)]
    while waiting:
        read = waiting.pop()
        definition = reader.definition(read)
        if definition is None or not isinstance(read, tree.Name):
            continue
        if found.get(read.id, definition) is not definition:
            # The name stands for several expressions.
            return {}
        if read.id not in found:
            found[read.id] = definition
            waiting += tree.walk(definition)
    return dict(sorted(found.items(), key=lambda item: item[1].span.start))


def _without_function(node: tree.Call) -> CallError:
    name = node.name
    if name == "odeint":
        message, hint = "needs a function", "write odeint(lambda y, t: -y, 1, [0, 1, 2])"
    elif name == "solve_ivp":
        message, hint = "needs a function", "write solve_ivp(lambda t, y: -y, (0, 2), [1], t_eval=[0, 1, 2])"
    elif name == "root":
        message = "needs a function"
        hint = "write x**(1/n) for the n-th root of x, and root(lambda t: t**2 - 2, 1) for where a function is 0"
    elif name in BINDING:
        limits = "0" if name == "limit" else "0, 1"
        message = "needs a function or a variable"
        hint = f"write {name}(t**2, t, {limits}), or {name}(lambda t: t**2, {limits})"
    else:
        message, hint = "needs a function", f"write lambda t: t**2 for the function of '{name}'"
    return CallError(f"'{name}' {message}", hint=hint, span=node.span)


class _TracedCalls:
    """Calls functions of the program while a functional traces them; `definitions` are expressions of the names that are
    computed in the trace, of what they are computed from."""

    def __init__(
        self,
        machine: Evaluator,
        node: tree.Call,
        caller: Caller,
        scope: Scope,
        definitions: Mapping[str, tree.Expression],
    ) -> None:
        self.machine, self.node, self.caller, self.scope = machine, node, caller, scope
        self.definitions = definitions

    def argument(self, value: Value) -> Any:
        """An argument of a functional: a function as one that can be called, and a number or tensor."""
        if isinstance(value, FUNCTIONS):
            return functools.partial(self.called, value)
        if isinstance(value, ProgramList) and value.made == "tuple":
            return [self.argument(item) for item in value.items]
        return as_tensor_or_number(value, f"'{self.node.name}'") if isinstance(value, TENSOR_CONVERTIBLE) else value

    def called(self, function: Value, *given: Any) -> Any:
        machine = self.machine
        # Traced values have no numbers to observe.
        observe, machine.observe = machine.observe, None
        provenance, machine.provenance = machine.provenance, UNKNOWN
        machine.traced_loops.append(_NO_LOOP)
        try:
            with _lifted(function, given) as inside, self._recomputed(function):
                found = machine.drive(self.caller(function, *inside), self.node, self.scope)
        finally:
            current_span.set(self.node.span)
            machine.traced_loops.pop()
            machine.observe, machine.provenance = observe, provenance
        if isinstance(found, ProgramList) and found.made == "tuple":
            return [as_tensor_or_number(item, "a result") for item in found.items]
        return as_tensor_or_number(found, f"the function of '{self.node.name}'")

    @contextmanager
    def _recomputed(self, function: Value) -> Iterator[None]:
        """Within the block, names that stand for expressions have the values of these in the trace."""
        names = self.machine.names if isinstance(function, Closure) else {}
        before = {name: names[name] for name in self.definitions if isinstance(names.get(name), Kind)}
        for name in before:
            names[name] = self.machine.drive(_value_of(self.definitions[name]), self.node, self.machine.scope)
        try:
            yield
        finally:
            names |= before


def _value_of(expression: tree.Expression) -> Task:
    return (yield expression)


class _NoLoop:
    """Stands for the traced loop where a function is traced that is in no loop."""

    rolls = False

    def row_at(self, _sequence: Value, _key: Sequence[Any]) -> None:
        return None

    def owns(self, _value: Value) -> bool:
        return False


_NO_LOOP = _NoLoop()


def _integrate(_node: tree.Call, f: Function, a: Any, b: Any, points: Any = None, **tolerances: Any) -> Value:
    return functional_calls.integrate(f, a, b, **_options(points, tolerances))


def _quad(
    node: tree.Call, func: Function, a: Any, b: Any, args: Any = None, points: Any = None, **tolerances: Any
) -> Value:
    found = functional_calls.quad(_with_arguments(func, args), a, b, **_options(points, tolerances))
    return ProgramList(found, node.span, "tuple")


def _dblquad(
    node: tree.Call, func: Function, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = None, **tolerances: Any
) -> Value:
    """SciPy's order: func(y, x), x from a to b, y from gfun(x) to hfun(x)."""
    function, options = _with_arguments(func, args), _options(None, tolerances)

    def inner(x: Any) -> Any:
        return functional_calls.integrate(lambda y: function(y, x), _at(gfun, x), _at(hfun, x), **options)

    return ProgramList(functional_calls.quad(inner, a, b, **options), node.span, "tuple")


def _tplquad(
    node: tree.Call,
    func: Function,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = None,
    **tolerances: Any,
) -> Value:
    """SciPy's order: func(z, y, x), and z from qfun(x, y) to rfun(x, y)."""
    function, options = _with_arguments(func, args), _options(None, tolerances)

    def innermost(y: Any, x: Any) -> Any:
        limits = _at(qfun, x, y), _at(rfun, x, y)
        return functional_calls.integrate(lambda z: function(z, y, x), *limits, **options)

    def inner(x: Any) -> Any:
        return functional_calls.integrate(lambda y: innermost(y, x), _at(gfun, x), _at(hfun, x), **options)

    return ProgramList(functional_calls.quad(inner, a, b, **options), node.span, "tuple")


def _root(_node: tree.Call, f: Function, start: Any, args: Any = None) -> Value:
    return functional_calls.root(_with_arguments(f, args), start)


def _brentq(_node: tree.Call, f: Function, a: Any, b: Any, args: Any = None) -> Value:
    check_real("brentq", a, b)
    ends = float(concrete(a)), float(concrete(b))
    return functional_calls.root(_with_arguments(f, args), 0.0, bracket=ends)


def _argmin(node: tree.Call, f: Function, start: Any, args: Any = None) -> Value:
    sign = -1.0 if node.name == "argmax" else 1.0
    return functional_calls.argmin(_with_arguments(f, args), start, sign=sign)


def _nsum(node: tree.Call, f: Function, first: Any, last: Any = None, **tolerances: Any) -> Value:
    if last is None:
        # As mpmath has it: nsum(f, [1, inf]).
        if arrays.shape(first) != (2,):
            raise CallError(f"'{node.name}' needs where it ends", hint=f"{node.name}(1/k**2, k, 1, inf)")
        first, last = index(first, 0), index(first, 1)
    return functional_calls.nsum(f, first, last, **_options(None, tolerances))


def _limit(_node: tree.Call, f: Function, x: Any, side: Any = None) -> Value:
    if side not in (None, "+", "-", "+-"):
        raise CallError("the side of a limit is '+' or '-'")
    side = None if side == "+-" else side
    # `with_function` passes a computed point as a function of the variable, which that function does not read.
    return limit(f, x(0.0), side, computed_point=x) if callable(x) else limit(f, x, side)


class SolvedProblem(NamedTuple):
    """The result of `solve_ivp`, as in SciPy: the times, and the states of shape [states, times]."""

    t: Any
    y: Any


def _odeint(
    _node: tree.Call, func: Function, y0: Any, t: Any, more: Sequence[Any], args: Any = None, **options: Any
) -> Value:
    """SciPy's order: func(y, t, *args). JAX gives the further arguments one by one, HIPS autograd as a tuple."""
    if len(more) == 1 and isinstance(more[0], list):
        more = more[0]
    function = _with_arguments(func, [*more] or args)
    return functional_calls.trajectory_of(lambda t, y: function(y, t), y0, t, **_method(options))


def _solve_ivp(
    _node: tree.Call, fun: Function, t_span: Any, y0: Any, t_eval: Any = None, args: Any = None, **options: Any
) -> Value:
    """SciPy's order: fun(t, y, *args). Without `t_eval` the states are those at both ends."""
    first, last = (t_span[k] if isinstance(t_span, list) else index(t_span, k) for k in (0, 1))
    times = stack([first, last]) if t_eval is None else t_eval
    # The start is at the first time of the span, which need not be among those requested.
    moments = concat([reshaped(first, (1,)), times])
    found = functional_calls.trajectory_of(_with_arguments(fun, args), y0, moments, **_method(options))
    return SolvedProblem(times, permuted(index(found, slice(1, None)), (1, 0)))


# The methods here for those of SciPy: among explicit ones, the stiffness of the system decides.
_METHODS = {
    **dict.fromkeys(("auto", "RK45", "RK23", "DOP853", "LSODA"), "auto"),
    **dict.fromkeys(("radau", "Radau", "BDF"), "radau"),
    "taylor": "taylor",
}


def _method(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an initial value problem. Raises CallError for a method that there is not."""
    given = dict(options)
    name = given.pop("method", "auto")
    if name not in _METHODS:
        raise CallError(f"there is no method {name!r}", hint="the methods are auto, taylor and radau")
    adjoint = given.pop("adjoint", None)
    if adjoint is not None and (isinstance(adjoint, str) or concrete(adjoint) not in (True, False)):
        raise CallError("adjoint= is True or False", hint="leave it out where either will do")
    chosen = None if adjoint is None else bool(concrete(adjoint))
    return {"method": _METHODS[name], "adjoint": chosen, **_options(None, given)}


def _with_arguments(function: Function, args: Any) -> Function:
    """A function that gets further arguments after its variables."""
    further = [] if args is None else args if isinstance(args, list) else [args]
    return lambda *variables: function(*variables, *further)


def _at(limit: Any, *outer: Any) -> Any:
    """The limit of an inner integral, which may be a function of the outer variables."""
    return limit(*outer) if callable(limit) else limit


def _options(points: Any, tolerances: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an integral as plain numbers."""
    found = {name: float(concrete(value)) for name, value in tolerances.items()}
    return found if points is None else {"points": arrays.to_numpy(concrete(points)).ravel().tolist(), **found}


_RULES: Mapping[str, Callable[..., Value]] = {
    "integrate": _integrate,
    "integral": _integrate,
    "quad": _quad,
    "dblquad": _dblquad,
    "tplquad": _tplquad,
    "limit": _limit,
    "odeint": _odeint,
    "solve_ivp": _solve_ivp,
    **dict.fromkeys(("nsum", "summation"), _nsum),
    **dict.fromkeys(("root", "fsolve", "newton"), _root),
    "brentq": _brentq,
    **dict.fromkeys(("argmin", "argmax"), _argmin),
}


@contextmanager
def _lifted(function: Value, given: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Within the block, numbers from outside that a function of the program reads are values of the trace of the first
    traced argument, if that is a trace of all; yields the arguments, of which the same holds."""
    trace = next((g.trace for g in given if isinstance(g, Traced)), None)
    if trace is None or not trace.computes_all:
        yield given
        return
    replaced: list[tuple[Scope, str, Value, Value]] = []
    scope = function.scope if isinstance(function, Closure) else None
    while scope is not None:
        for name, value in scope.names.items():
            inside = _inside(value, trace)
            if inside is not value:
                replaced.append((scope, name, value, inside))
        scope = scope.outer
    for scope, name, _, inside in replaced:
        scope.names[name] = inside
    try:
        yield [_inside(g, trace) for g in given]
    finally:
        for scope, name, value, inside in replaced:
            if scope.names.get(name) is inside:
                scope.names[name] = value


def _inside(value: Value, trace: RoundTrace) -> Value:
    """A number or small array that is differentiated by, as a value of the trace; anything else as it is."""
    if isinstance(value, ProgramList):
        items = [_inside(item, trace) for item in value.items]
        return value if all(map(_is, items, value.items)) else ProgramList(items, value.span, value.made)
    if (
        not isinstance(value, Kind)
        or isinstance(value, Traced)
        or arrays.dtype_name(value) not in ("float64", "complex128")
    ):
        return value
    if math.prod(arrays.shape(value)) > _MOST:
        return value
    try:
        return trace.inside(value)
    except NotRecordableError:
        return value


def _is(a: Value, b: Value) -> bool:
    return a is b
