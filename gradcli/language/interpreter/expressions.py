"""Handlers of all expressions except calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType

from gradcli import arrays, limits
from gradcli.errors import (
    EvaluationError,
    GradcliError,
    ProgramSyntaxError,
    Proposal,
    UnknownNameError,
    closest_word,
)
from gradcli.language.interpreter import arithmetic_operators, whole_numbers
from gradcli.language.interpreter.lists import ProgramList, is_position, item_of
from gradcli.language.interpreter.loop_policy import count_of, rolled_calls
from gradcli.language.interpreter.machine import Evaluator, Scope, ScopedNode, Task
from gradcli.language.interpreter.mutable_references import ElementwiseInput, MutableReference, is_basic
from gradcli.language.interpreter.statements import bind, evaluate_index, loop_values
from gradcli.language.interpreter.values import Value, as_bool, as_tensor_or_number, select_result, written_number
from gradcli.language.names.scope import IMAGINARY_UNIT, unknown_name
from gradcli.language.operations import ATTRIBUTES, EXACT_INTEGERS, TRUTH
from gradcli.language.stable.removable import (
    ExpressionWithLimit,
    RemovableSingularity,
    RemovableSingularityOverBalls,
    is_analytic,
)
from gradcli.language.stable.stable_expressions import RewrittenExpression, StableExpression
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import assume, concrete, constant
from gradcli.primitives.entries import arithmetic
from gradcli.primitives.entries.comparisons import equal, isfinite, less, logical_not, where
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.powers import power
from gradcli.primitives.operation import Operation
from gradcli.type_hints import Any


def _list(machine: Evaluator, node: tree.List, _scope: Scope) -> Task:
    items = []
    for item in node.items:
        items.append(machine.kept((yield item)))
    return ProgramList(items, node.span, "tuple" if isinstance(node, tree.Tuple) else "display")


def _comprehension(machine: Evaluator, node: tree.Comprehension, scope: Scope) -> Task:
    found: list[Value] = []
    within = Scope({}, scope, scope.opaque)
    first, *others = node.clauses
    iterated = yield first.iterable
    if not others and not first.conditions:
        rolled = rolled_calls(machine, node, count_of(iterated))
        made = None if rolled is None else _rolled_items(rolled, machine, node, iterated, within)
        if made is not None:
            return made
    # A stack of iterators, one for each active clause, so that clauses do not recurse.
    loops = [(first, loop_values(iterated, first.iterable.span))]
    while loops:
        clause, loop = loops[-1]
        item = next(loop, _END)
        if item is _END:
            loops.pop()
            continue
        bind(machine, clause.target, item, within)
        for condition in clause.conditions:
            if not as_bool((yield ScopedNode(condition, within)), condition):
                break
        else:
            if len(loops) == len(node.clauses):
                found.append(machine.kept((yield ScopedNode(node.element, within))))
            else:
                inner = others[len(loops) - 1]
                values = yield ScopedNode(inner.iterable, within)
                loops.append((inner, loop_values(values, inner.iterable.span)))
    return ProgramList(found, node.span, "generated")


_END = object()


def _rolled_items(
    rolled: ModuleType, machine: Evaluator, node: tree.Comprehension, iterated: Value, within: Scope
) -> ProgramList | None:
    """The items of a comprehension as one equation; None where they are to be evaluated one by one."""

    def element() -> Task:
        return (yield ScopedNode(node.element, within))

    def one_round(loop: Any, _state: Value) -> tuple[Value, Value]:
        bind(machine, node.clauses[0].target, loop.item_of(iterated), within)
        return None, machine.drive(element(), node, within)

    counters = iterated if isinstance(iterated, range) else range(count_of(iterated))
    found = rolled.run(machine, node, counters, None, one_round)
    within.names.clear()
    made: ProgramList | None = None if found is None else found.as_list(node.span)
    return made


def _factorial(machine: Evaluator, node: tree.Factorial, _scope: Scope) -> Task:
    value = yield node.operand
    exact = whole_numbers.of_function("factorial", (value,)) if machine.scalars is None else None
    if exact is not None:
        return exact
    value = as_tensor_or_number(value, "'!'")
    return machine.apply(node, "gamma", table.known("gamma"), arithmetic.add(value, 1.0))


def _is_none(_machine: Evaluator, node: tree.NoneTest, _scope: Scope) -> Task:
    value = yield node.operand
    return (value is None) != node.negated


def _input(machine: Evaluator, node: tree.Input, _scope: Scope) -> Task:
    if node.id in machine.names:
        return machine.names[node.id]
    if node.default is None:
        raise unknown_name(node.id, machine.names, machine.program.source, node.span)
    return (yield node.default)


def _unary(machine: Evaluator, node: tree.Unary, _scope: Scope) -> Task:
    value = yield node.operand
    if node.operator == "not":
        return not as_bool(value, node.operand)
    if node.operator == "~":
        return _of_truths(machine, node, logical_not, value)
    if type(value) is int:
        return -value if node.operator == "-" else value
    value = as_tensor_or_number(value, f"'{node.operator}'")
    return machine.apply(node, "negative", arithmetic.negative, value) if node.operator == "-" else value


def _binary(machine: Evaluator, node: tree.Binary, _scope: Scope) -> Task:
    left = yield node.left
    right = yield node.right
    if isinstance(left, ProgramList) or isinstance(right, ProgramList):
        repeated = _of_lists(machine, node, left, right)
        if repeated is not None:
            return repeated
    if node.operator in TRUTH:
        return _of_truths(machine, node, TRUTH[node.operator], left, right)
    exact = arithmetic_operators.exact_result(machine, node.operator, left, right)
    if exact is not None:
        return exact
    left, right = as_tensor_or_number(left, f"'{node.operator}'"), as_tensor_or_number(right, f"'{node.operator}'")
    if node.operator == "+" and _is_truth(left) and _is_truth(right) and (arrays.shape(left) or arrays.shape(right)):
        raise EvaluationError(
            "'+' of truth values is 'one or both' in NumPy and PyTorch, and counts them in mathematics",
            hint="write a | b for the first, 1*a + b for the second",
            span=node.operator_span,
        )
    written = _written(machine, node) if node.operator == "**" else ""
    if written == "^" and _is_truth(left) and _is_truth(right):
        raise EvaluationError(
            "'^' of truth values is 'one or the other' in Python, and a power here",
            hint="write a != b for the first, a**b for the second",
            span=node.operator_span,
        )
    if len(arrays.shape(left)) > 1 and (written == "^" or written[:1] in _RAISED):
        raise EvaluationError(
            "a power of a matrix can be that of its elements or a product of matrices",
            hint="write A**n for the elements, matrix_power(A, n) for the product, inv(A) for the inverse",
            span=node.span,
        )
    return arithmetic_operators.applied(machine, node, left, right)


# First characters of superscript exponents.
_RAISED = tuple("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _is_truth(value: Value) -> bool:
    return arrays.dtype_name(value) == "bool"


def _written(machine: Evaluator, node: tree.Binary) -> str:
    return machine.program.source[node.operator_span.start : node.operator_span.end]


def _of_truths(machine: Evaluator, node: tree.Binary | tree.Unary, operation: Operation, *operands: Value) -> Value:
    """Apply `&`, `|` or `~` elementwise to booleans. Raises EvaluationError for numbers."""
    values = [as_tensor_or_number(o, f"'{node.operator}'") for o in operands]
    if not all(map(_is_truth, values)):
        raise EvaluationError(
            f"'{node.operator}' stands between truth values, as in (x > 0) & (y > 0), and these are numbers",
            hint="'and', 'or' and 'not' are for one number each; brackets go around comparisons",
            span=node.span,
        )
    return machine.apply(node, operation.name, operation, *values)


def _is_written(item: tree.SyntaxNode) -> bool:
    """Return whether an item of a list is a literal, or a list of literals, such as `[[0.0]*2]*3`."""
    waiting = [item]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.Unary):
            waiting.append(part.operand)
        elif isinstance(part, tree.List):
            waiting.extend(part.items)
        elif isinstance(part, tree.Binary) and part.operator == "*" and isinstance(part.left, tree.List):
            waiting.append(part.left)
        elif not isinstance(part, (tree.Number, tree.Constant, tree.String)):
            return False
    return True


def _of_lists(machine: Evaluator, node: tree.Binary, left: Value, right: Value) -> ProgramList | None:
    """The result of an operator on lists as in Python; None where it computes with them as tensors.

    Raises EvaluationError where Python and NumPy give different results.
    """
    items, other = (left, right) if isinstance(left, ProgramList) else (right, left)
    if node.operator == "*" and not isinstance(other, ProgramList):
        # In Python code, the list usually comes before the number of repetitions.
        display = node.left if items is left else node.right
        if isinstance(display, tree.List) and any(isinstance(item, tree.Compare) for item in display.items):
            raise EvaluationError(
                "'*' of a list with a condition repeats the list in Python, and in books is where the condition holds",
                hint="write (x > 2)*y in round brackets, or tile(x, n)",
                span=node.operator_span,
            )
        counted = items is left or isinstance(node.left, tree.Number)
        if counted and len(items.items) == 1 and not arrays.shape(as_tensor_or_number(other, "'*'")):
            # A list of a literal is repeated. A list of a computed value may be meant as a tensor, unless imports show
            # that the program is Python code.
            written = not isinstance(display, tree.List) or all(map(_is_written, display.items))
            if not written and not machine.imports:
                raise _both(node, "repeats the list", "multiplies its elements", "tile(x, n)", "multiply(x, n)")
            count = max(0, integer(concrete(as_tensor_or_number(other, "'*'")), "how often a list is repeated"))
            limits.charge(count)
            return ProgramList(items.items * count, node.span, "generated")
        number_node = node.right if items is left else node.left
        if isinstance(number_node, tree.Number) or items.made == "grown":
            raise _both(node, "repeats the list", "multiplies its elements", "tile(x, n)", "multiply(x, n)")
    if node.operator == "+" and isinstance(other, ProgramList):
        raise _both(node, "joins the lists", "adds their elements", "concat([a, b])", "add(a, b)")
    return None


def _both(node: tree.Binary, python: str, numpy: str, one: str, other: str) -> EvaluationError:
    return EvaluationError(
        f"'{node.operator}' of lists {python} in Python, and {numpy} as tensors in NumPy",
        hint=f"write {one} or {other}",
        span=node.operator_span,
    )


def _compare(machine: Evaluator, node: tree.Compare, _scope: Scope) -> Task:
    left = yield node.operands[0]
    result: Value = True
    for operator, operand in zip(node.operators, node.operands[1:]):
        right = yield operand
        if isinstance(left, str) and isinstance(right, str) and operator in ("==", "!="):
            return (left == right) == (operator == "==")
        exact = whole_numbers.compared(operator, left, right)
        if exact is None:
            left, right = as_tensor_or_number(left, f"'{operator}'"), as_tensor_or_number(right, f"'{operator}'")
            result = arithmetic_operators.compared(machine, node, operator, left, right)
        else:
            result = exact
        left = right
        if operand is not node.operands[-1] and not as_bool(result, node):
            break
    return result


def _logical(machine: Evaluator, node: tree.Logical, _scope: Scope) -> Task:
    left = yield node.left
    if as_bool(left, node.left) == (node.operator == "or"):
        return left
    return (yield node.right)


def _conditional(machine: Evaluator, node: tree.Conditional, _scope: Scope) -> Task:
    test = yield node.test
    return (yield node.body if as_bool(test, node.test) else node.orelse)


def _stable_form(machine: Evaluator, node: StableExpression, scope: Scope) -> Task:
    rule = node.rule
    if rule.when is None and not machine.may_be_complex:
        machine.rewritten[node] = None
        return (yield node.stable)
    values = {}
    for name, places in node.parts.items():
        values[name] = as_tensor_or_number((yield places[0]), f"'{rule.pattern}'")
    in_complex = any(map(arrays.is_complex, values.values()))
    if in_complex and rule.of_complex is None:
        return (yield from _in_one_form(machine, node, scope, values, stable=False))
    when = rule.of_complex if in_complex else rule.when
    if when is None:
        return (yield from _in_one_form(machine, node, scope, values, stable=True))
    holds = when(**values)
    everywhere = assume(holds)
    if everywhere or rule.apart is None or assume(logical_not(holds)):
        value = yield from _in_one_form(machine, node, scope, values, stable=everywhere)
        return _with_signs_as_written(node, value) if in_complex and everywhere else value
    within, without = ({n: where(holds, *pair) for n, pair in pairs.items()} for pairs in _apart(values, rule.apart))
    stable = yield from _in_one_form(machine, node, scope, within, stable=True)
    original = yield from _in_one_form(machine, node, scope, without, stable=False)
    return where(holds, _with_signs_as_written(node, stable) if in_complex else stable, original)


def _with_signs_as_written(node: StableExpression, value: Value) -> Value:
    """A complex value with imaginary parts of +0 in place of -0, as 1 - z and 1 + z have them: on a branch cut, the sign
    decides the side. exp(z) - 1 keeps the sign, as its stable form does."""
    written: tree.Expression = node
    while isinstance(written, RewrittenExpression):
        written = written.original
    subtracts_number = isinstance(written, tree.Binary) and isinstance(written.right, tree.Number)
    keeps = subtracts_number and not node.rule.adds_to_variable
    return value if keeps else arithmetic.add(value, 0.0)


def _removable(machine: Evaluator, node: RemovableSingularity, scope: Scope) -> Task:
    # Imported here as few programs have such expressions.
    from gradcli.primitives.entries.elementwise.taylor_series import taylor_series

    point, (first, times) = node.series.point, node.places[0]
    given = yield first
    value = as_tensor_or_number(given, f"'{node.rule.pattern}'")
    if arrays.is_complex(value) and not is_analytic(node.form, node.series):
        return (yield from _as_it_stands(machine, node, scope, {first: given}))
    variable = value if times == 1.0 else arithmetic.divide(value, times)
    if machine.scalars is None:
        near = less(arithmetic.absolute(arithmetic.subtract(constant(variable), point)), node.series.radius)
    else:
        # Exact arithmetic loses no digits near the point.
        near = equal(constant(variable), point)
    if assume(logical_not(near)):
        return (yield from _as_it_stands(machine, node, scope, {first: given}))
    machine.rewritten[node] = None
    everywhere = assume(near)
    inside = variable if everywhere else where(near, variable, point)
    by_series = machine.apply(node, taylor_series.called, partial(taylor_series, series=node.series), inside)
    by_series = yield from _times_others(machine, node, by_series)
    if everywhere:
        return by_series
    outside = where(near, point + node.series.radius, variable)
    values = {place: arithmetic.multiply(outside, times) for place, times in node.places}
    return where(near, by_series, (yield from _as_it_stands(machine, node, scope, values)))


def _times_others(
    machine: Evaluator, node: RemovableSingularity | RemovableSingularityOverBalls, by_series: Value
) -> Task:
    """The value of the series times the powers of the other factors."""
    for (place, times), n in node.others:
        other = as_tensor_or_number((yield place), f"'{node.rule.pattern}'")
        other = power(other if times == 1.0 else arithmetic.divide(other, times), float(n))
        by_series = machine.apply(node, "multiply", arithmetic.multiply, by_series, other)
    return by_series


def _removable_over_balls(machine: Evaluator, node: RemovableSingularityOverBalls, scope: Scope) -> Task:
    # Imported here as few programs have such expressions.
    from gradcli.primitives.entries.elementwise.taylor_series import taylor_series

    first, times = node.places[0]
    given = yield first
    value = as_tensor_or_number(given, f"'{node.rule.pattern}'")
    if arrays.is_complex(value):
        return (yield from _as_it_stands(machine, node, scope, {first: given}))
    variable = value if times == 1.0 else arithmetic.divide(value, times)
    if not node.is_near(concrete(variable)):
        return (yield from _as_it_stands(machine, node, scope, {first: given}))
    machine.rewritten[node] = None
    by_series = machine.apply(node, taylor_series.called, partial(taylor_series, series=node.series), variable)
    return (yield from _times_others(machine, node, by_series))


def _limiting(machine: Evaluator, node: ExpressionWithLimit, scope: Scope) -> Task:
    # Imported here as few programs have such expressions.
    from gradcli.language.stable import limits_at_points as points

    plan = node.plan
    values: list[Value] = []
    held: dict[tree.SyntaxNode, Value] = {}
    for leaf in plan.leaves:
        first, *others = leaf.nodes
        given = yield first
        values.append(as_tensor_or_number(given, f"'{node.rule.pattern}'"))
        if not isinstance(first, (tree.Name, tree.Number)):
            held.update(dict.fromkeys((first, *others), given))
    if any(map(arrays.is_complex, values)):
        return (yield from _as_it_stands(machine, node, scope, held))
    numbers = points.as_floats(values)
    if numbers is None:
        return (yield from _limits_of_elements(machine, node, scope, values, held))
    found = None
    if plan.is_suspect(numbers):
        found = machine.apply(node, "limit", lambda *_: points.limit_at_literal(plan, values, numbers))
    if found is None and machine.scalars is not None and not plan.has_value(numbers):
        # Before the evaluation as written: in ball arithmetic, a quotient 0/0 may look like any other enclosure.
        found = machine.apply(node, "limit", lambda *_: points.limit_at_equal_variables(plan, values, numbers))
    if found is None:
        value = yield from _as_it_stands(machine, node, scope, held)
        if machine.scalars is not None or assume(isfinite(constant(value))):
            return value
        found = machine.apply(node, "limit", lambda *_: points.limit_at_equal_variables(plan, values, numbers))
        if found is None:
            return value
    machine.rewritten[node] = None
    return found


def _limits_of_elements(
    machine: Evaluator,
    node: ExpressionWithLimit,
    scope: Scope,
    values: Sequence[Value],
    held: dict[tree.SyntaxNode, Value],
) -> Task:
    from gradcli.language.stable import limits_at_points as points

    found = points.limit_at_elements(node.plan, values)
    if found is None:
        return (yield from _as_it_stands(machine, node, scope, held))
    machine.rewritten[node] = None
    near, limits_there, leaf, elsewhere = found
    held |= dict.fromkeys(node.plan.leaves[leaf].nodes, elsewhere)
    return where(near, limits_there, (yield from _as_it_stands(machine, node, scope, held)))


def _apart(values: Mapping[str, Value], numbers: tuple[float, float]) -> Sequence[Mapping[str, tuple[Value, Value]]]:
    """Pair each value with its counterpart in the other form: for values in the stable form, and in the original one."""
    within, without = numbers
    return {n: (v, within) for n, v in values.items()}, {n: (without, v) for n, v in values.items()}


def _in_one_form(
    machine: Evaluator, node: StableExpression, scope: Scope, values: Mapping[str, Value], *, stable: bool
) -> Task:
    held: dict[tree.SyntaxNode, Value] = {part: values[name] for name, places in node.parts.items() for part in places}
    if not stable:
        return (yield from _as_it_stands(machine, node, scope, held))
    machine.rewritten[node] = None
    # Keeps the parts from being evaluated again by the form.
    machine.held.update(held)
    try:
        return (yield node.stable)
    finally:
        _let_go(machine, held)


def _as_it_stands(machine: Evaluator, node: RewrittenExpression, scope: Scope, held: Mapping[Any, Value]) -> Task:
    """Evaluate the original form, with the values `held` of parts that are already evaluated."""
    machine.held.update(held)
    try:
        return (yield from machine.handlers[type(node.original)](machine, node.original, scope))
    finally:
        _let_go(machine, held)


def _let_go(machine: Evaluator, held: Mapping[Any, Value]) -> None:
    # A nested form may have removed some of them already.
    for part in held:
        machine.held.pop(part, None)


def _attribute(machine: Evaluator, node: tree.Attribute, _scope: Scope) -> Task:
    value = yield node.value
    if isinstance(value, tuple) and node.name in getattr(value, "_fields", ()):
        return getattr(value, node.name)
    if node.name not in ATTRIBUTES:
        raise _unknown_attribute(node)
    if isinstance(value, MutableReference) and node.name in ("T", "mT"):
        return value.view(ATTRIBUTES[node.name])
    return machine.apply(node, node.name, ATTRIBUTES[node.name], as_tensor_or_number(value, f"'.{node.name}'"))


def _unknown_attribute(node: tree.Attribute) -> GradcliError:
    if node.name == "grad":
        hint = "leave it out: the gradients are computed anyway, and diff(y, x) is one within the program"
    elif table.find(node.name) is not None:
        hint = Proposal(f"'{node.name}' is a method: call it, as in x.{node.name}()", f"{node.name}()")
    else:
        hint = f"attributes are .{', .'.join(ATTRIBUTES)}"
        close = closest_word(node.name, ATTRIBUTES)
        hint = Proposal(f"did you mean '.{close}'?", close, otherwise=hint) if close else hint
    return UnknownNameError(f"unknown attribute '{node.name}'", hint=hint, span=node.name_span)


def _index(machine: Evaluator, node: tree.Index, _scope: Scope) -> Task:
    value = yield node.value
    key = yield from evaluate_index(machine, node)
    if isinstance(value, tuple):
        return select_result(value, key)
    if isinstance(value, ProgramList) and len(key) == 1 and is_position(key[0]):
        return item_of(value, key[0])
    row = machine.traced_loops[-1].row_at(value, key) if machine.traced_loops else None
    if row is not None:
        return row
    if isinstance(value, MutableReference):
        return _view(machine, node, value, key)
    tensor = as_tensor_or_number(value, "an index")
    return machine.apply(node, "index", index, tensor, key)


def _view(machine: Evaluator, node: tree.Index, value: MutableReference, key: Any) -> Value:
    """Index a mutable tensor: a view where NumPy gives one, which is for keys without arrays, otherwise a copy."""
    part = value.part(key) if isinstance(value, ElementwiseInput) else None
    if part is not None:
        return part
    result = machine.apply(node, "index", index, value.value, key)
    return value.view(lambda x: index(x, key)) if arrays.shape(result) and is_basic(key) else result


def _number(machine: Evaluator, node: Any, _scope: Scope) -> Value:
    if machine.scalars is None and node.value >= EXACT_INTEGERS:
        return whole_numbers.written(node)
    return written_number(node, machine.scalars)


def _imaginary(machine: Evaluator, node: Any, scope: Scope) -> Value:
    if machine.find("j", scope) is not None:
        raise _either_product(node, f"{node.text}*j", f"{node.text}*1j")
    if IMAGINARY_UNIT in machine.names:
        return arithmetic.multiply(node.value, machine.names[IMAGINARY_UNIT])
    if machine.scalars is not None and node.text:
        return machine.scalars.imaginary(node.text)
    return complex(0.0, node.value)


def _imaginary_unit(machine: Evaluator, node: Any, scope: Scope) -> Value:
    if machine.find(node.id, scope) is not None or machine.assigns(node.id):
        return machine.lookup(node, scope)
    source = machine.program.source
    power, number = (
        re.compile(_POWER).match(source, node.span.end),
        re.compile(_BEFORE).search(source, 0, node.span.start),
    )
    if power is not None and number is not None and number[0] != "1":
        raise _either_product(node, f"{number[0]}*(1i{power[0]})", f"({number[0]}i){power[0]}")
    return machine.names.get(IMAGINARY_UNIT, 1j)


# The number before `i` in `2i`, and the exponent after it; compiled where they are needed.
_BEFORE = r"[\w.]*\Z"
_POWER = r"\s*(?:[⁺⁻]?[⁰¹²³⁴-⁹]+|(?:\^|\*\*)\s*[-+]?\s*(?:[\w.]+|\([^()]*\)))"


def _either_product(node: tree.Expression, one: str, other: str) -> ProgramSyntaxError:
    return ProgramSyntaxError(
        f"this can be read as {one} and as {other}", hint=f"write {one} or {other}", span=node.span
    )


def _constant(_machine: Evaluator, node: Any, _scope: Scope) -> Value:
    return node.value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.Comprehension: _comprehension,
    tree.Input: _input,
    tree.Factorial: _factorial,
    tree.NoneTest: _is_none,
    tree.List: _list,
    tree.Tuple: _list,
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Compare: _compare,
    tree.Logical: _logical,
    tree.Conditional: _conditional,
    tree.Attribute: _attribute,
    tree.Index: _index,
    StableExpression: _stable_form,
    RemovableSingularity: _removable,
    RemovableSingularityOverBalls: _removable_over_balls,
    ExpressionWithLimit: _limiting,
}

SIMPLE: dict[type, Callable[..., Value]] = {
    tree.Number: _number,
    tree.Imaginary: _imaginary,
    tree.ImaginaryUnit: _imaginary_unit,
    tree.String: _constant,
    tree.Constant: _constant,
    tree.Name: Evaluator.lookup,
}
