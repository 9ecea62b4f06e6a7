"""Reads equations as a program: definitions, and a vector of the differences of the sides of all equations."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from gradcli.errors import GradcliError, ProgramSyntaxError, Proposal, Span, UnknownNameError, closest_word
from gradcli.language.names import binders
from gradcli.language.names.unused import does_something
from gradcli.language.parsing import charge_parsing
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import parse_equations, tree
from gradcli.language.syntax.parser import ParsedStatement, program_body
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table

_HINT = "an equation is left = right, left == right, or an expression that is to be 0"


class Equations(NamedTuple):
    """A program whose value is the vector of residuals, and the spans of the equations in its source."""

    program: tree.Module
    places: Sequence[Span]


def read_equations(source: str, names: Collection[str]) -> Equations:
    """Read statements `left = right`, `left == right`, or expressions that are to be 0, as equations for unknowns.

    `names` are the inputs and the unknowns. `name = value` is an equation for one of these, otherwise a definition.

    Raises ProgramSyntaxError, located in `source`, for inequalities, for a name that is defined twice or has a value
    from outside, and where there is no equation.
    """
    reader = _Reader(source, names)
    for said in _said(source):
        reader.read(said)
    if not reader.equations:
        # In a text of function definitions only, the last function is called.
        *body, last = program_body(tuple(reader.body), source)
        if not isinstance(last, tree.Evaluate):
            raise _no_equation(last, source)
        reader.body = body
        reader.equation(last.value)
    program, places = reader.equations_and_program()
    return Equations(charge_parsing(program), places)


def _said(source: str) -> Sequence[ParsedStatement]:
    """The parsed statements. Raises ProgramSyntaxError, with a hint where equations are not separated by ';'."""
    try:
        return parse_equations(source)
    except ProgramSyntaxError as error:
        parts = re.split(r",(?![^()\[\]]*[)\]])|\n|(?<!\w)and(?!\w)", source)
        if len(parts) > 1 and all(len(re.findall(r"(?<![<>=!])=(?!=)", part)) == 1 for part in parts):
            written = "; ".join(part.strip() for part in parts)
            said = f"several equations are separated by ';': write {written}"
            error.hint = Proposal(said, written, whole=True, otherwise=error.hint)
        raise


def _no_equation(last: tree.Statement, source: str) -> GradcliError:
    """The error for a text that only defines names and functions, as `sinn(x) = 0.5` does."""
    hint: str = _HINT
    if isinstance(last, tree.Define) and not isinstance(last.body, tree.Block):
        if (meant := closest_word(last.name, table.names())) is not None:
            span = Span(last.span.start, last.span.start + len(last.name))
            hint = Proposal(f"did you mean '{meant}'?", meant, otherwise=_HINT)
            return UnknownNameError(f"unknown function '{last.name}'", hint=hint, span=span, source=source)
        body = source[last.body.span.start : last.body.span.end]
        said = f"'{last.name}(…) =' defines a function: write {body} for what is to be 0"
        hint = Proposal(said, body, span=last.span, otherwise=_HINT)
    return ProgramSyntaxError("there is no equation", hint=hint, span=last.span, source=source)


class _Reader:
    def __init__(self, source: str, names: Collection[str]) -> None:
        self.source = source
        self.names = names
        self.body: list[tree.Statement] = []
        self.equations: list[Span] = []
        self.defined: dict[str, Span] = {}

    def read(self, said: ParsedStatement) -> None:
        if said.sides is not None and self._is_equation(said):
            left, right = said.sides
            span = Span(left.span.start, right.span.end)
            self._equal(span, left, right)
            return
        for statement in said.statements or ():
            if isinstance(statement, tree.Evaluate) and not does_something(statement.value):
                self.equation(statement.value)
            else:
                self._define(statement)

    def _is_equation(self, said: ParsedStatement) -> bool:
        """Return whether `=` separates the sides of an equation, and is not an assignment or definition."""
        (statement,) = said.statements or (None,)
        left = said.sides[0] if said.sides else None
        if isinstance(statement, tree.Define):
            return table.find(statement.name) is not None or statement.name in self.defined
        if not isinstance(statement, tree.Assign):
            return True
        if isinstance(left, tree.List):
            return not binders.bound_names(statement.targets[0]).isdisjoint(self.names)
        base = left
        while isinstance(base, tree.Index):
            base = base.value
        return not isinstance(base, tree.Name) or base.id in self.names

    def _define(self, statement: tree.Statement) -> None:
        for name in binders.names_given(statement):
            if name in self.names:
                raise self._error(f"'{name}' has a value from outside", statement.span, _HINT)
            if name in self.defined:
                raise self._error(
                    f"'{name}' is given a value twice",
                    statement.span,
                    f"write {name} == … for an equation, else another name",
                )
            self.defined[name] = statement.span
        self.body.append(statement)

    def equation(self, value: tree.Expression) -> None:
        """Add an expression as an equation."""
        if type(value) is tree.Tuple:
            for item in value.items:
                self.equation(item)
        elif isinstance(value, tree.Compare):
            strange = next((o for o in value.operators if o != "=="), None)
            if strange is not None:
                raise self._error(f"'{strange}' makes no equation", value.span, _HINT)
            for left, right in pairwise(value.operands):
                self._equal(Span(left.span.start, right.span.end), left, right)
        elif isinstance(value, tree.Logical) or (isinstance(value, tree.Unary) and value.operator == "not"):
            raise self._error("a truth value is no equation", value.span, "several equations are separated by ';'")
        else:
            self._let_be_zero(value.span, value)

    def _equal(self, span: Span, left: tree.Expression, right: tree.Expression) -> None:
        if type(left) is tree.Tuple and type(right) is tree.Tuple and len(left.items) == len(right.items):
            for one, other in zip(left.items, right.items):
                self._equal(span, one, other)
            return
        between = Span(left.span.end, right.span.start)
        self._let_be_zero(span, tree.Binary(span, "-", between, left, right))

    def _let_be_zero(self, span: Span, value: tree.Expression) -> None:
        """Add an assignment of a residual to the program."""
        self.equations.append(span)
        self.body.append(tree.Assign(span, (tree.BoundName(span, _name(len(self.equations))),), value))

    def equations_and_program(self) -> Equations:
        # A span after the end of the text, for nodes that are not in it.
        end = Span(len(self.source), len(self.source) + 1)

        def call(name: str, argument: tree.Expression) -> tree.Expression:
            return tree.Call(end, name, end, None, (argument,), (), stable_expressions.MODULE)

        count = len(self.equations)
        vectors = tuple(call("ravel", tree.Name(end, _name(k), "")) for k in range(1, count + 1))
        value = vectors[0] if count == 1 else call("concat", tree.List(end, vectors))
        whole = Span(0, len(self.source))
        program = tree.Module(whole, self.source, (*self.body, tree.Evaluate(whole, value)))
        return Equations(program, tuple(self.equations))

    def _error(self, message: str, span: Span, hint: str) -> ProgramSyntaxError:
        return ProgramSyntaxError(message, hint=hint, span=span, source=self.source)


def _name(k: int) -> str:
    """The name of a residual, which has a space, so that a program cannot use it."""
    return f"equation {k}"
