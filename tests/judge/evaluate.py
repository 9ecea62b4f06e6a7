"""The value of a program on numbers of mpmath, by recursion over its syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

from gradcli.errors import GradcliError
from gradcli.language.names import dialects
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.signature import resolve_keyword
from tests.judge import functions
from tests.judge.functions import NotJudgedError, exact, numeric, truth, whole

_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "pi": lambda: +mpmath.pi,
    "π": lambda: +mpmath.pi,
    "tau": lambda: 2 * mpmath.pi,
    "e": lambda: +mpmath.e,
    "inf": lambda: mpmath.inf,
    "nan": lambda: mpmath.nan,
}
_BINARY = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder"}
_BINARY |= {"**": "pow", "&": "logical_and", "|": "logical_or"}
_COMPARE = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal"}
# Steps of a loop or a recursion that the judge takes.
_MOST_STEPS = 10_000
_MOST_DEPTH = 100


class _Function(NamedTuple):
    node: tree.Define | tree.Lambda
    names: Names


class Names:
    """The names of a block, and those around it."""

    def __init__(self, values: dict[str, Any], outer: Names | None = None) -> None:
        self.values = values
        self.outer = outer

    def find(self, name: str) -> dict[str, Any] | None:
        scope: Names | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values
            scope = scope.outer
        return None


class Reached(Exception):
    """The run came to what it was to stop at, with this value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Leaving(Exception):
    def __init__(self, kind: type, value: Any = None) -> None:
        super().__init__()
        self.kind = kind
        self.value = value


class Run:
    """One run of a program. With `stop` it ends at the so-many-th time that a derivative at a node is asked for, with the
    value that is to be differentiated."""

    def __init__(
        self,
        program: tree.Module,
        bindings: Mapping[str, Any],
        derivative: Callable[[Run, tree.Call, str, int], Any],
        stop: tuple[tree.Call, int] | None = None,
    ) -> None:
        self.program = program
        self.given = {name: exact(value) for name, value in bindings.items()}
        self.names = Names(dict(self.given))
        self.derivative = derivative
        self.stop = stop
        self.asked: dict[tree.Call, int] = {}
        self.dialect = dialects.dialect_of(program)
        self.steps = 0
        self.depth = 0

    def value(self) -> Any:
        try:
            result = self.block(self.program.body, self.names)
            return numeric(result)
        except (ZeroDivisionError, OverflowError) as error:
            raise NotJudgedError(f"{type(error).__name__}") from error
        except (mpmath.libmp.NoConvergence, ValueError, TypeError, IndexError) as error:
            raise NotJudgedError(f"{type(error).__name__}: {error}") from error

    # --- statements

    def block(self, statements: Sequence[tree.Statement], names: Names) -> Any:
        value = None
        for statement in statements:
            value = self.statement(statement, names)
        return value

    def statement(self, node: tree.Statement, names: Names) -> Any:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise NotJudgedError("a long run")
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise NotJudgedError(f"{type(node).__name__}")
        return method(node, names)

    def _evaluate(self, node: tree.Evaluate, names: Names) -> Any:
        return self.expression(node.value, names)

    def _assign(self, node: tree.Assign, names: Names) -> Any:
        value = self.expression(node.value, names)
        for target in node.targets:
            self.bind(target, value, names)
        return value

    def _augment(self, node: tree.Augment, names: Names) -> Any:
        if not isinstance(node.target, tree.Name) or node.operator == "@":
            raise NotJudgedError("an element that is changed")
        before, value = self.expression(node.target, names), self.expression(node.value, names)
        if isinstance(before, list):
            raise NotJudgedError("a list that grows")
        value = functions.elementwise(_BINARY[node.operator], [before, value])
        self.bind(tree.BoundName(node.span, node.target.id), value, names)
        return value

    def bind(self, target: tree.SyntaxNode, value: Any, names: Names) -> None:
        if isinstance(target, tree.BoundName):
            names.values[target.name] = value
        elif isinstance(target, tree.TargetList):
            parts = [*value]
            if len(parts) != len(target.targets):
                raise NotJudgedError("names that do not fit")
            for part, name in zip(parts, target.targets):
                self.bind(name, part, names)
        else:
            raise NotJudgedError("an element that is changed")

    def _define(self, node: tree.Define, names: Names) -> None:
        names.values[node.name] = _Function(node, names)

    def _if(self, node: tree.If, names: Names) -> Any:
        return self.block(node.body if truth(self.expression(node.test, names)) else node.orelse, names)

    def _for(self, node: tree.For, names: Names) -> Any:
        value = None
        for item in self.items(self.expression(node.iterable, names)):
            self.bind(node.target, item, names)
            value = self.looped(node.body, names)
            if value is _Leaving:
                break
        return value

    def _while(self, node: tree.While, names: Names) -> Any:
        value = None
        while truth(self.expression(node.test, names)):
            value = self.looped(node.body, names)
            if value is _Leaving:
                break
        return value

    def looped(self, body: Sequence[tree.Statement], names: Names) -> Any:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise NotJudgedError("a long run")
        try:
            return self.block(body, names)
        except _Leaving as leaving:
            if leaving.kind is tree.Return:
                raise
            return _Leaving if leaving.kind is tree.Break else None

    def _return(self, node: tree.Return, names: Names) -> Any:
        raise _Leaving(tree.Return, None if node.value is None else self.expression(node.value, names))

    def _break(self, _node: tree.Break, _names: Names) -> Any:
        raise _Leaving(tree.Break)

    def _continue(self, _node: tree.Continue, _names: Names) -> Any:
        raise _Leaving(tree.Continue)

    def _pass(self, _node: tree.Pass, _names: Names) -> None:
        pass

    def _import(self, _node: tree.Import, _names: Names) -> None:
        pass

    def items(self, value: Any) -> Sequence[Any]:
        if isinstance(value, (list, tuple, range)):
            return value
        array = numeric(value)
        if not isinstance(array, np.ndarray) or not array.ndim:
            raise NotJudgedError("a loop over a number")
        return [*array]

    # --- expressions

    def expression(self, node: tree.Expression, names: Names) -> Any:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise NotJudgedError("a deep expression")
        try:
            method = getattr(self, f"_x_{type(node).__name__.lower()}", None)
            if method is None:
                raise NotJudgedError(f"{type(node).__name__}")
            return method(node, names)
        finally:
            self.depth -= 1

    def _x_number(self, node: tree.Number, _names: Names) -> Any:
        return mpf(node.value)

    def _x_string(self, node: tree.String, _names: Names) -> Any:
        return node.value

    _x_constant = _x_string

    def _x_name(self, node: tree.Name, names: Names) -> Any:
        if node.module:
            if node.id in _CONSTANTS:
                return _CONSTANTS[node.id]()
            raise NotJudgedError(f"{node.module}.{node.id}")
        found = names.find(node.id)
        if found is not None:
            return found[node.id]
        if node.id in _CONSTANTS and node.id != "tau":
            return _CONSTANTS[node.id]()
        raise NotJudgedError(f"the name {node.id}")

    def _x_list(self, node: tree.List, names: Names) -> Any:
        return [self.expression(item, names) for item in node.items]

    _x_tuple = _x_list

    def _x_comprehension(self, node: tree.Comprehension, names: Names) -> Any:
        found: list[Any] = []
        inner = Names({}, names)

        def clauses(k: int) -> None:
            if k == len(node.clauses):
                found.append(self.expression(node.element, inner))
                return
            clause = node.clauses[k]
            for item in self.items(self.expression(clause.iterable, inner)):
                self.bind(clause.target, item, inner)
                if all(truth(self.expression(c, inner)) for c in clause.conditions):
                    clauses(k + 1)

        clauses(0)
        return found

    def _x_unary(self, node: tree.Unary, names: Names) -> Any:
        value = self.expression(node.operand, names)
        if node.operator == "not":
            return not truth(value)
        if node.operator == "~":
            return functions.elementwise("logical_not", [value])
        return functions.elementwise("negative", [value]) if node.operator == "-" else numeric(value)

    def _x_binary(self, node: tree.Binary, names: Names) -> Any:
        left, right = self.expression(node.left, names), self.expression(node.right, names)
        if isinstance(left, list) and len(left) == 1 and node.operator == "*" and np.shape(exact(right)) == ():
            return left * whole(right)
        if node.operator == "@":
            return functions.call("matmul", [left, right], {})
        return functions.elementwise(_BINARY[node.operator], [left, right])

    def _x_factorial(self, node: tree.Factorial, names: Names) -> Any:
        return functions.elementwise("factorial", [self.expression(node.operand, names)])

    def _x_compare(self, node: tree.Compare, names: Names) -> Any:
        left, result = self.expression(node.operands[0], names), True
        for operator, operand in zip(node.operators, node.operands[1:]):
            right = self.expression(operand, names)
            result = functions.elementwise(_COMPARE[operator], [left, right])
            left = right
            if operand is not node.operands[-1] and not truth(result):
                break
        return result

    def _x_logical(self, node: tree.Logical, names: Names) -> Any:
        left = self.expression(node.left, names)
        return left if truth(left) == (node.operator == "or") else self.expression(node.right, names)

    def _x_conditional(self, node: tree.Conditional, names: Names) -> Any:
        return self.expression(node.body if truth(self.expression(node.test, names)) else node.orelse, names)

    def _x_lambda(self, node: tree.Lambda, names: Names) -> Any:
        return _Function(node, names)

    def _x_attribute(self, node: tree.Attribute, names: Names) -> Any:
        x = np.asarray(numeric(self.expression(node.value, names)), object)
        found: dict[str, Callable[[], Any]] = {
            "T": lambda: x.T,
            "mT": lambda: np.swapaxes(x, -1, -2),
            "shape": lambda: exact([mpf(s) for s in x.shape]),
            "ndim": lambda: mpf(x.ndim),
            "size": lambda: mpf(x.size),
        }
        if node.name not in found:
            raise NotJudgedError(f"the attribute {node.name}")
        return found[node.name]()

    def _x_index(self, node: tree.Index, names: Names) -> Any:
        value = self.expression(node.value, names)
        first = node.items[0]
        items = first.items if len(node.items) == 1 and isinstance(first, tree.Tuple) else node.items
        key = tuple(self.key(item, names) for item in items)
        if isinstance(value, list) and len(key) == 1 and isinstance(key[0], int):
            return value[key[0]]
        return np.asarray(numeric(value), object)[key]

    def key(self, item: tree.SyntaxNode, names: Names) -> Any:
        if isinstance(item, tree.Ellipsis):
            return Ellipsis
        if isinstance(item, tree.Slice):
            ends = (item.start, item.stop, item.step)
            given = [None if e is None else self.expression(e, names) for e in ends]
            return slice(*(None if g is None else whole(g) for g in given))
        value = self.expression(item, names)  # type: ignore[arg-type]
        if value is None:
            return None
        array = exact(value)
        if isinstance(array, np.ndarray):
            flat = [*array.ravel()]
            if flat and all(isinstance(a, (bool, np.bool_)) for a in flat):
                return array.astype(bool)
            return np.array([whole(a) for a in flat], int).reshape(array.shape)
        if isinstance(array, bool):
            raise NotJudgedError("an index that is a truth value")
        return whole(array)

    # --- calls

    def _x_call(self, node: tree.Call, names: Names) -> Any:
        own = None if node.module else names.find(node.name)
        if own is not None and isinstance(own[node.name], _Function):
            return self.invoke(own[node.name], node, names)
        if node.name in ("diff", "jacobian", "hessian") and not node.module:
            return self.differentiated(node, names)
        if node.name == "range" and not node.module:
            return range(*(whole(self.expression(a, names)) for a in node.arguments))
        try:
            operation = dialects.resolve_function(node, self.dialect)
        except GradcliError as error:
            raise NotJudgedError(str(error)) from error
        arguments = [self.expression(a, names) for a in tree.positional(node)]
        # Of one argument the norm of NumPy is that of the elements.
        as_elsewhere = node.name == "norm" and len(arguments) == 1 and not node.keywords
        if operation is None or not (as_elsewhere or operation is table.find(operation.name)):
            raise NotJudgedError(f"the function {node.name}")
        keywords = {
            resolve_keyword(k.name, operation.parameters): self.expression(k.value, names) for k in node.keywords
        }
        for parameter in operation.parameters[len(arguments) :]:
            if parameter.name not in keywords or parameter.variadic:
                break
            arguments.append(keywords.pop(parameter.name))
        return functions.call("norm" if as_elsewhere else operation.name, arguments, keywords)

    def _x_apply(self, node: tree.Apply, names: Names) -> Any:
        function = self.expression(node.function, names)
        if not isinstance(function, _Function):
            raise NotJudgedError("a call of a value")
        return self.invoke(function, node, names)

    def invoke(self, function: _Function, node: tree.Call | tree.Apply, names: Names) -> Any:
        given = tree.positional(node) if isinstance(node, tree.Call) else node.arguments
        parameters = function.node.parameters
        values = {p.name: self.expression(a, names) for p, a in zip(parameters, given)}
        values |= {k.name: self.expression(k.value, names) for k in node.keywords}
        for parameter in parameters:
            if parameter.name not in values:
                if parameter.default is None:
                    raise NotJudgedError("a call with too few arguments")
                values[parameter.name] = self.expression(parameter.default, function.names)
        local = Names(values, function.names)
        body = function.node.body
        if not isinstance(body, tree.Block):
            return self.expression(body, local)
        try:
            self.block(body.statements, local)
        except _Leaving as leaving:
            return leaving.value
        return None

    def differentiated(self, node: tree.Call, names: Names) -> Any:
        """The derivative that the program takes at a node, by an input that it never assigns to."""
        positional = tree.positional(node)
        if len(positional) < 2 or not isinstance(positional[1], tree.Name):
            raise NotJudgedError("a derivative by what is no name")
        name = positional[1].id
        if names.find(name) is not self.names.values or name in _assigned(self.program):
            raise NotJudgedError("a derivative by a name that is assigned")
        count = self.asked[node] = self.asked.get(node, 0) + 1
        value = numeric(self.expression(positional[0], names))
        if self.stop == (node, count):
            raise Reached(value)
        order = 2 if node.name == "hessian" else 1
        orders = [self.expression(k.value, names) for k in node.keywords if k.name == "n"]
        orders += [self.expression(a, names) for a in positional[2:]]
        if orders:
            order = whole(orders[0])
        if len(orders) > 1 or order < 0:
            raise NotJudgedError("a derivative by several names")
        return self.derivative(self, node, name, order) if order else value


def _assigned(program: tree.Module) -> frozenset[str]:
    nodes = tree.all_nodes(program)
    bound = {n.name for n in nodes if isinstance(n, tree.BoundName)}
    return frozenset(
        bound | {n.target.id for n in nodes if isinstance(n, tree.Augment) and isinstance(n.target, tree.Name)}
    )
