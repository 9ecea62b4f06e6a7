"""Differentiates a formula by the rules of a textbook, one at a time: each application is an equation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import limits
from gradcli.formulas import languages
from gradcli.formulas.rule_equations import (
    Choice,
    Derivative,
    Literal,
    Negative,
    OperandDerivative,
    Plain,
    ProductSide,
    QuotientSide,
    SideWriter,
    Square,
    Total,
    no_formula,
)
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.formulas.writing.text_writer import write
from gradcli.language.names import binders
from gradcli.language.names.evaluator_functions import DERIVATIVES, DETACH, TRANSFORMS
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table

# Cost of applying a rule, in eighths of a step: a formula is derived and written.
_RULE = 400


class RuleLine(NamedTuple):
    """The application of a rule: an equation.

    `depth` is the number of applications that this one belongs to. `sides` are in the language of the formulas, `left`
    and `right` are programs, in which `diff(u, x)` is the derivative of u by x.
    """

    rule: str
    depth: int
    sides: tuple[str, str]
    left: str
    right: str


class RuleDerivation(NamedTuple):
    """The derivative of a formula by a name, and the simplified result.

    `definitions` are the statements that the equations refer to, `symbol` is the derivative in Leibniz's notation, and
    `program` is the result as a program.
    """

    by: tuple[str, ...]
    definitions: Sequence[str]
    lines: Sequence[RuleLine]
    derivative: str
    result: str
    program: str


def rule_derivations(program: tree.Module, wrt: Sequence[str], order: int, language: str) -> Iterator[RuleDerivation]:
    """The derivatives of a program by each name, and with order 2 those of each of these.

    `language` is `text` or `latex`. Raises DifferentiationError for what is not a formula of numbers.
    """
    for place, name in enumerate(wrt):
        first = _derived(program, (name,), language)
        yield first
        for other in wrt[place:] if order == 2 else ():
            yield _derived(parse_charged(first.program), (name, other), language)


def _derived(program: tree.Module, by: tuple[str, ...], language: str) -> RuleDerivation:
    name = by[-1]
    formula = _Formula(program, name)
    writer = SideWriter(program, name, language)
    programs = SideWriter(program, name, "program")
    lines = [
        RuleLine(
            rule,
            depth,
            (writer.write(left).text, writer.write(right).text),
            programs.write(left).text,
            programs.write(right).text,
        )
        for rule, depth, left, right in formula.equations()
    ]
    formulas = derivatives_as_formulas(program, {}, [name])
    written = write(formulas.derivatives[name], languages.find(language)._replace(parts=False)).result
    text = languages.document("text", formulas).members["derivatives"][name]
    definitions = [program.source[s.span.start : s.span.end].strip() for s in formula.statements]
    derivative = writer.write(Derivative(formula.value)).text
    return RuleDerivation(by, definitions, lines, derivative, written, text)


class _Formula:
    """A formula: assignments, functions, and the expression that is the value."""

    def __init__(self, program: tree.Module, by: str) -> None:
        self._program = program
        self._by = by
        *self.statements, last = program.body
        self._assigned: dict[str, tree.Expression] = {}
        self._functions: dict[str, tree.Define] = {}
        # The names that depend on the one to differentiate by.
        self._dependent = {by}
        for statement in self.statements:
            self._define(statement)
        if isinstance(last, tree.Assign):
            self._define(last)
            self.statements.append(last)
            (target,) = last.targets
            self.value: Any = tree.Name(target.span, self._program.source[target.span.start : target.span.end], "")
        elif isinstance(last, tree.Evaluate):
            self.value = last.value
        else:
            raise no_formula(last, program, "a branch or loop is none")

    def _define(self, statement: tree.Statement) -> None:
        if isinstance(statement, tree.Define):
            reads = {n.id for n in tree.walk(statement) if isinstance(n, tree.Name)} - binders.local_names(statement)
            if reads & self._dependent:
                raise no_formula(statement, self._program, f"'{statement.name}' reads more than its parameters")
            self._functions[statement.name] = statement
        elif isinstance(statement, tree.Assign) and all(isinstance(t, tree.BoundName) for t in statement.targets):
            for target in statement.targets:
                assert isinstance(target, tree.BoundName)
                if target.name in self._assigned or target.name == self._by:
                    raise no_formula(statement, self._program, f"'{target.name}' has two values")
                self._assigned[target.name] = statement.value
                if self._depends(statement.value):
                    self._dependent.add(target.name)
        elif not isinstance(statement, tree.Import):
            raise no_formula(statement, self._program, "a branch, a loop or a change of a tensor is none")

    def _depends(self, node: tree.SyntaxNode) -> bool:
        return any(isinstance(n, tree.Name) and n.id in self._dependent for n in tree.walk(node))

    def equations(self) -> Iterator[tuple[str, int, Any, Any]]:
        """The applications of rules, each before those to its parts: the rule, the depth, and the sides."""
        waiting: list[tuple[int, tree.Expression]] = [(0, self.value)]
        seen: set[str] = set()
        while waiting:
            depth, node = waiting.pop()
            source = "".join(self._program.source[node.span.start : node.span.end].split())
            if source in seen or (isinstance(node, tree.Name) and node.id == self._by and depth):
                continue
            seen.add(source)
            limits.charge_steps(_RULE)
            rule, right = self._rule(node)
            yield rule, depth, Derivative(node), right
            waiting += [(depth + 1, part) for part in reversed([*_differentiated(right)])]

    def _rule(self, node: tree.Expression) -> tuple[str, Any]:
        """The rule for an expression, and the right side that it gives."""
        if not self._depends(node):
            return "constant", Literal("0")
        if isinstance(node, tree.Name):
            if node.id == self._by:
                return "the variable itself", Literal("1")
            return f"definition of {node.id}", Derivative(self._assigned[node.id])
        if isinstance(node, tree.Unary) and node.operator in "+-":
            inner = Derivative(node.operand)
            return "constant factor rule", Negative(inner) if node.operator == "-" else inner
        if isinstance(node, tree.Conditional):
            return "branch by branch", Choice(node.test, Derivative(node.body), Derivative(node.orelse))
        if isinstance(node, tree.Binary):
            return self._operator(node)
        if isinstance(node, tree.Factorial):
            return self._chain(node, [node.operand])
        if isinstance(node, tree.Call):
            return self._call(node)
        raise no_formula(node, self._program, "this is none")

    def _operator(self, node: tree.Binary) -> tuple[str, Any]:
        left, right = node.left, node.right
        if node.operator in "+-":
            return "sum rule", Total([(sign, Derivative(term)) for sign, term in _terms(node)])
        if node.operator == "*":
            if not self._depends(left):
                return "constant factor rule", ProductSide([Plain(left), Derivative(right)])
            if not self._depends(right):
                return "constant factor rule", ProductSide([Plain(right), Derivative(left)])
            first, second = ProductSide([Derivative(left), Plain(right)]), ProductSide([Plain(left), Derivative(right)])
            return "product rule", Total([("+", first), ("+", second)])
        if node.operator == "/":
            return self._quotient(left, right)
        if node.operator not in ("**", "//", "%"):
            raise no_formula(node, self._program, f"'{node.operator}' is no operator of them")
        operands = [part for part in (left, right) if self._depends(part)]
        return self._chain(node, operands, self._of_power(left, right) if node.operator == "**" else None)

    def _of_power(self, base: tree.Expression, exponent: tree.Expression) -> str:
        if not self._depends(exponent):
            return "power rule"
        return "rule of powers with a variable exponent" if self._depends(base) else "exponential rule"

    def _quotient(self, above: tree.Expression, below: tree.Expression) -> tuple[str, Any]:
        if not self._depends(below):
            return "constant factor rule", QuotientSide(Derivative(above), Plain(below))
        if not self._depends(above):
            return "quotient rule", QuotientSide(
                Negative(ProductSide([Plain(above), Derivative(below)])), Square(Plain(below))
            )
        first, second = ProductSide([Derivative(above), Plain(below)]), ProductSide([Plain(above), Derivative(below)])
        return "quotient rule", QuotientSide(Total([("+", first), ("-", second)]), Square(Plain(below)))

    def _call(self, node: tree.Call) -> tuple[str, Any]:
        known = table.find(node.name) is not None and node.name not in DERIVATIVES
        if node.name not in self._functions and (not known or node.name in (*TRANSFORMS, *DETACH)):
            raise no_formula(node, self._program, f"'{node.name}' is no function of numbers")
        if any(self._depends(keyword.value) for keyword in node.keywords):
            raise no_formula(node, self._program, "an operand is given by keyword")
        arguments = tree.positional(node)
        if node.name == "where" and len(arguments) == 3 and node.receiver is None:
            condition, first, second = arguments
            return "branch by branch", Choice(condition, Derivative(first), Derivative(second))
        return self._chain(node, [a for a in arguments if self._depends(a)], None)

    def _chain(
        self, node: tree.Expression, operands: Sequence[tree.Expression], name: str | None = None
    ) -> tuple[str, Any]:
        """The chain rule for an operation or a call."""
        for operand in operands:
            if isinstance(operand, (tree.List, tree.Comprehension, tree.Compare, tree.Logical, tree.Lambda)):
                raise no_formula(operand, self._program, "this is no number")
        terms = [
            ("+", ProductSide([OperandDerivative(node, operands, i), Derivative(operand)]))
            for i, operand in enumerate(operands)
        ]
        called = node.name if isinstance(node, tree.Call) else node.operator if isinstance(node, tree.Binary) else "!"
        inner = [o for o in operands if not (isinstance(o, tree.Name) and o.id == self._by)]
        rule = name or (f"derivative of {called}" if not inner else f"chain rule with the derivative of {called}")
        if name and inner:
            rule = f"chain rule with the {name}"
        return rule, terms[0][1] if len(terms) == 1 else Total(terms)


def _differentiated(side: Any) -> Iterator[tree.Expression]:
    """The expressions whose derivatives stand in a side, in order."""
    waiting = [side]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Derivative):
            yield part.node
        elif isinstance(part, Total):
            waiting += [term for _, term in reversed(part.terms)]
        elif isinstance(part, ProductSide):
            waiting += reversed(part.factors)
        elif isinstance(part, (Negative, Square)):
            waiting.append(part.side)
        elif isinstance(part, QuotientSide):
            waiting += [part.below, part.above]
        elif isinstance(part, Choice):
            waiting += [part.second, part.first]


def _terms(node: tree.Expression) -> list[tuple[str, tree.Expression]]:
    """The terms of a sum with their signs."""
    found: list[tuple[str, tree.Expression]] = []
    waiting: list[tuple[str, Any]] = [("+", node)]
    while waiting:
        sign, term = waiting.pop()
        if isinstance(term, tree.Binary) and term.operator in "+-":
            other = sign if term.operator == "+" else {"+": "-", "-": "+"}[sign]
            waiting += [(other, term.right), (sign, term.left)]
        else:
            found.append((sign, term))
    return found
