"""Reads the text of a system of differential equations as a program of time, states and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gradcli.errors import GradcliError, ProgramSyntaxError, Span, UnknownNameError
from gradcli.language.names import binders, scope
from gradcli.language.names.resolution import resolve
from gradcli.language.names.unused import does_something
from gradcli.language.parsing import charge_parsing
from gradcli.language.syntax import derivative_marks, parse_expression, parse_timed_equations, tree
from gradcli.language.syntax.derivative_marks import PRIME, readable
from gradcli.language.syntax.parser import ParsedStatement, TimedStatement

_HINT = "an equation is dx/dt = … or x' = …"


@dataclass(frozen=True)
class Jump:
    """A change of some states at given times, which are an expression without states."""

    times: tree.Expression
    statements: tuple[tree.Statement, ...]
    span: Span


@dataclass(frozen=True)
class DifferentialEquations:
    """A system of first order.

    `states` are in the order of the equations, each followed by its derivatives below the highest, which end in
    `PRIME`. `statements` define names and the highest derivatives; `rates` are the names of the derivatives of the
    states.
    """

    source: str
    time: str
    states: tuple[str, ...]
    rates: tuple[str, ...]
    statements: tuple[tree.Statement, ...]
    jumps: tuple[Jump, ...]
    # The names whose derivatives the equations have, where they are not among the states.
    differentiated: tuple[str, ...] | None = None

    def program(self, value: tree.Expression) -> tree.Module:
        """A program of time, states and parameters with this value."""
        return self._module((*self.statements, tree.Evaluate(value.span, value)))

    @property
    def slopes(self) -> tree.Module:
        """The program of the vector of the derivatives of all states."""
        return self.program(tree.List(self._end, tuple(self._name(rate) for rate in self.rates)))

    def jumped(self, jump: Jump, state: str) -> tree.Module:
        """The program of a state just after a jump."""
        return self._module((*self.statements, *jump.statements, tree.Evaluate(self._end, self._name(state))))

    def rate(self, name: str) -> tree.Module:
        """The program of one of `rates`."""
        return self.program(self._name(name))

    @property
    def _end(self) -> Span:
        return Span(len(self.source), len(self.source) + 1)

    def _name(self, name: str) -> tree.Name:
        return tree.Name(self._end, name, "")

    def _module(self, body: tuple[tree.Statement, ...]) -> tree.Module:
        return tree.Module(Span(0, len(self.source)), self.source, body)

    def expression(self, text: str) -> tree.Expression:
        """An expression of the states in a text, whose places in it are its own. Raises ProgramSyntaxError, located in
        the text."""
        with located(text):
            return parse_expression(derivative_marks.expression(text, self.time, self.bases))

    def with_expression(self, text: str) -> tree.Module:
        """The program of an expression of the states; its source is that of the equations and the text.

        Raises ProgramSyntaxError, located in the text.
        """
        try:
            value = self.expression(" " * (len(self.source) + 1) + text)
        except GradcliError:
            # The error, in the text alone.
            self.expression(text)
            raise
        whole = f"{self.source}\n{text}"
        return tree.Module(Span(0, len(whole)), whole, (*self.statements, tree.Evaluate(value.span, value)))

    @property
    def bases(self) -> tuple[str, ...]:
        """The names whose derivatives the equations have."""
        if self.differentiated is not None:
            return self.differentiated
        return tuple(name for name in self.states if not name.endswith(PRIME))

    @property
    def parameters(self) -> dict[str, Span]:
        """The names that need a value, each with a place where it is read."""
        programs = [self.slopes, *(self.jumped(jump, state) for jump in self.jumps for state in self.states)]
        programs += [self.program(jump.times) for jump in self.jumps]
        return {
            name: read.span
            for program in programs
            for name, read in scope.free_names(program).items()
            if name != self.time and name not in self.states and not read.maybe_assigned
        }


def has_differential_equations(source: str) -> bool:
    """Return whether a text has an equation for a derivative."""
    try:
        found = derivative_marks.marked(source)
    except GradcliError:
        return True
    return bool(found.states)


@contextmanager
def located(source: str) -> Iterator[None]:
    """Let errors show the source in place of its text with marks."""
    try:
        yield
    except GradcliError as error:
        if error.source is None or len(error.source) == len(source):
            error.source = source
        error.message = readable(error.message)
        error.args = (error.message,)
        error.hint = None if error.hint is None else readable(str(error.hint))
        raise


@contextmanager
def unmarked() -> Iterator[None]:
    """Let errors show apostrophes in place of the letter that stands for a prime."""
    try:
        yield
    except GradcliError as error:
        error.source = None if error.source is None else readable(error.source)
        error.message = readable(error.message)
        error.args = (error.message,)
        raise


def read_differential_equations(source: str) -> DifferentialEquations:
    """Read equations `dx/dt = …`, `x' = …` and of higher order, with definitions and jumps between them.

    Raises ProgramSyntaxError, located in `source`, where a name has two equations or values, where the equations are no
    such, and where there are none.
    """
    with located(source):
        found = derivative_marks.marked(source)
        reader = _Reader(source, found.time)
        for said in parse_timed_equations(found.text):
            reader.read(said)
        result = reader.equations()
        charge_parsing(result.slopes)
        return result


class _Reader:
    def __init__(self, source: str, time: str) -> None:
        self.source = source
        self.time = time
        # The highest derivatives, with the places of their equations.
        self.highest: dict[str, Span] = {}
        self.defined: dict[str, Span] = {}
        self.statements: list[tree.Statement] = []
        self.jumps: list[Jump] = []

    def read(self, said: ParsedStatement | TimedStatement) -> None:
        if isinstance(said, TimedStatement):
            if said.name != self.time:
                hint = f"at {self.time} = 12: …; --stop '{said.name} = 0' ends where a condition is met"
                raise self._error(f"jumps are at values of the time, '{self.time}' here", said.span, hint)
            self.jumps.append(Jump(said.times, said.statements, said.span))
        elif said.sides is not None and isinstance(said.sides[0], tree.Name) and said.sides[0].id.endswith(PRIME):
            self._equation(said.sides[0].id, said.sides[0].span, said.sides[1])
        elif said.statements is None:
            assert said.sides is not None
            span = Span(said.sides[0].span.start, said.sides[1].span.end)
            raise self._error("this is no differential equation", span, self._solved(said.sides) or _HINT)
        else:
            for statement in said.statements:
                self._define(statement)

    def _solved(self, sides: tuple[tree.Expression, tree.Expression]) -> str | None:
        """The hint that solves for the derivative that an equation begins with, as in x'' + x = 0 and m*x'' = -x; None
        for others."""
        first = sides[0]
        if isinstance(first, tree.Binary) and first.operator == "*":
            factor, name, right = (self.source[s.span.start : s.span.end] for s in (first.left, first.right, sides[1]))
            return f"write {name} = ({right})/({factor})" if derivative_marks.is_derivative(name) else None
        while isinstance(first, tree.Binary) and first.operator in "+-":
            first = first.left
        left, right = (self.source[side.span.start : side.span.end].strip() for side in sides)
        name = self.source[first.span.start : first.span.end]
        rest = re.fullmatch(r"([-+])\s*(.*)", left.removeprefix(name).strip(), re.DOTALL)
        if rest is None or not derivative_marks.is_derivative(name):
            return None
        moved = rest[2] if rest[1] == "+" else f"-{rest[2]}"
        moved = moved if re.fullmatch(r"[\w.*/'’′]+", moved) else f"({moved})"
        return f"write {name} = {'' if right == '0' else f'{right} '}-{' ' * (right != '0')}{moved}"

    def _equation(self, name: str, span: Span, value: tree.Expression) -> None:
        base = name.rstrip(PRIME)
        whole = Span(span.start, value.span.end)
        before = next((n for n in self.highest if n.rstrip(PRIME) == base), None)
        if before is not None:
            raise self._error(f"'{base}' has an equation already", whole, "a system has one equation for each name")
        if base == self.time:
            raise self._error(f"'{base}' is the time, and has no equation", whole, _HINT)
        self.highest[name] = whole
        self.statements.append(tree.Assign(whole, (tree.BoundName(span, name),), value))

    def _define(self, statement: tree.Statement) -> None:
        if isinstance(statement, tree.Evaluate) and not does_something(statement.value):
            raise self._error("this is neither an equation nor a definition", statement.span, _HINT)
        if isinstance(statement, tree.Define) and statement.name.endswith(PRIME):
            hint = f"write {readable(statement.name)} = …"
            raise self._error("states are functions of the time already", statement.span, hint)
        for name in binders.names_given(statement):
            if name in self.defined:
                raise self._error(f"'{name}' is given a value twice", statement.span, "use another name")
            self.defined[name] = statement.span
        # A branch or a loop may give values, too.
        if not isinstance(statement, tree.Define):
            for name in resolve(self._module(statement)).bound:
                self.defined.setdefault(name, statement.span)
        self.statements.append(statement)

    def equations(self) -> DifferentialEquations:
        if not self.highest:
            raise self._error("there is no differential equation", Span(0, len(self.source)), _HINT)
        states = [name for highest in self.highest for name in derivative_marks.below(highest)]
        for name, span in self.defined.items():
            if name in states or name == self.time:
                what = "has an equation" if name in states else "is the time"
                hint = f"use another name, or for a jump of it at {self.time} = 12: {readable(name)} += 5"
                raise self._error(f"'{name}' {what}, and is given a value", span, hint)
        for statement in self.statements:
            self._check_times(statement, states)
        for jump in self.jumps:
            self._check_jump(jump, states)
        rates = tuple(name + PRIME for name in states)
        return DifferentialEquations(self.source, self.time, tuple(states), rates, self._ordered(), tuple(self.jumps))

    def _check_times(self, statement: tree.Statement, states: Sequence[str]) -> None:
        """Raise ProgramSyntaxError for a state at another time, as in x(t - 1)."""
        for node in tree.walk(statement):
            if isinstance(node, tree.Call) and node.name in states and len(node.arguments) == 1:
                argument = node.arguments[0]
                if any(isinstance(n, tree.Name) and n.id == self.time for n in tree.walk(argument)):
                    name = readable(node.name)
                    is_now = isinstance(argument, tree.Name)
                    hint = f"write {name}" if is_now else "equations with delays are not solved"
                    raise self._error(f"'{name}' is read at the time '{self.time}' alone", node.span, hint)

    def _check_jump(self, jump: Jump, states: Sequence[str]) -> None:
        for statement in jump.statements:
            if not isinstance(statement, (tree.Assign, tree.Augment)):
                raise self._error("a jump gives states new values", statement.span, "at t = 12: x += 5")
            targets = statement.targets if isinstance(statement, tree.Assign) else [statement.target]
            for target in targets:
                name = target.name if isinstance(target, tree.BoundName) else getattr(target, "id", None)
                if name not in states:
                    known = ", ".join(map(readable, states))
                    hint = f"the states are {known}" + (f"; {name}' = 0 makes {name} one" if name else "")
                    raise self._error("only states jump", statement.span, hint)

    def _ordered(self) -> tuple[tree.Statement, ...]:
        """The statements, each after those that define what it reads, as equations hold in any order."""
        # What a function reads is needed where it is called.
        found: list[tree.Statement] = [s for s in self.statements if isinstance(s, tree.Define)]
        left = [(s, *self._names(s)) for s in self.statements if not isinstance(s, tree.Define)]
        while left:
            writes = [w for _, _, w in left]
            ready = (
                i
                for i, (_, reads, _) in enumerate(left)
                if reads.isdisjoint(set().union(*writes[:i], *writes[i + 1 :]))
            )
            found.append(left.pop(next(ready, 0))[0])
        return tuple(found)

    def _names(self, statement: tree.Statement) -> tuple[frozenset[str], frozenset[str]]:
        """The names that a statement reads from others, and those that it gives values to."""
        functions = {s.name: s for s in self.statements if isinstance(s, tree.Define)}
        calls = {node.name for node in tree.walk(statement) if isinstance(node, tree.Call)}
        parts = [statement, *(functions.values() if not calls.isdisjoint(functions) else ())]
        reads = {name for part in parts for name in scope.free_names(self._module(part))}
        writes = resolve(self._module(statement)).bound
        return frozenset(reads - writes), frozenset(writes)

    def _module(self, statement: tree.Statement) -> tree.Module:
        return tree.Module(statement.span, self.source, (statement,))

    def _error(self, message: str, span: Span, hint: str) -> ProgramSyntaxError:
        return ProgramSyntaxError(message, hint=hint, span=span, source=self.source)


def unknown_parameter(equations: DifferentialEquations, name: str, span: Span) -> UnknownNameError:
    """The error for a name without a value."""
    shown = readable(name)
    return UnknownNameError(
        f"'{shown}' has no value", hint=f"give it one: {shown}=1", span=span, source=equations.source
    )
