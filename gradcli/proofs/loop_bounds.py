"""Encloses the results of loops iteration by iteration: the bounds after one iteration are the box of the next.

In a single run over a large box, the bounds of an iterated map such as x = r*x*(1 - x) grow with every iteration,
because ball arithmetic ignores that x and 1 - x depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import UndecidedError, from_text
from gradcli.arrays.flint.intervals import Bounds
from gradcli.errors import GradcliError, Span
from gradcli.language.names import scope
from gradcli.language.operations import error_span
from gradcli.language.syntax import tree
from gradcli.proofs.interval_evaluation import IntervalProgram

# Returns bounds of the value of a program over its whole box. Raises GradcliError where there are none.
Search = Callable[[IntervalProgram], Sequence[Bounds]]

# Bound on the number of iterations; longer loops are run without these bounds.
_MOST_ROUNDS = 1_000
# Significant digits to which bounds are rounded between iterations, so that their fractions stay short.
_DIGITS = 30


# Bounds of the result of an operation in each iteration, by source span.
Rounds = Mapping[Span, Sequence[Bounds]]


def loop_bounds(boxed: IntervalProgram, search: Search) -> Rounds:
    """Enclose what the loops of a program assign, over the whole box. Only loops over a `range` without branches are
    treated."""
    found: dict[Span, Sequence[Bounds]] = {}
    for number, statement in enumerate(boxed.program.body):
        if isinstance(statement, tree.For) and _is_plain(statement):
            with suppress(UndecidedError, GradcliError):
                found |= _Loop(boxed, number, statement, search).rounds()
    return found


def _is_plain(loop: tree.For) -> bool:
    over_range = isinstance(loop.iterable, tree.Call) and loop.iterable.name == "range" and not loop.iterable.keywords
    simple = all(
        isinstance(s, tree.Augment | tree.Assign)
        and all(isinstance(t, tree.BoundName | tree.Name) for t in _targets(s))
        for s in loop.body
    )
    return over_range and simple and isinstance(loop.target, tree.BoundName)


def _targets(statement: tree.Assign | tree.Augment) -> Sequence[tree.SyntaxNode]:
    return statement.targets if isinstance(statement, tree.Assign) else (statement.target,)


def _name(target: Any) -> str:
    return target.name if isinstance(target, tree.BoundName) else target.id


class _Loop:
    def __init__(self, boxed: IntervalProgram, number: int, loop: tree.For, search: Search) -> None:
        self.boxed = boxed
        self.loop = loop
        self.search = search
        self.before = boxed.program.body[:number]
        # The last assignment to each name.
        assigning = [s for s in loop.body if isinstance(s, tree.Assign | tree.Augment)]
        self.assigned = {_name(t): s for s in assigning for t in _targets(s)}

    def rounds(self) -> Rounds:
        """Return the bounds of each name after each iteration. Raises UndecidedError or GradcliError where there are
        none."""
        names = [*self.assigned]
        program = self._program(self.loop.body, names)
        reads = scope.free_names(program)
        counter = _name(self.loop.target)
        box = {n: self._at_the_start(n) for n in reads if n not in self.boxed.fixed and n != counter}
        fixed = {n: v for n, v in self.boxed.fixed.items() if n in reads}
        known: dict[Any, Sequence[Bounds]] = {}
        found: dict[str, list[Bounds]] = {name: [] for name in names}
        for value in self._numbers():
            given = fixed | ({counter: float(value)} if counter in reads else {})
            key = tuple(box.values()), given.get(counter)
            if key not in known:
                whole = IntervalProgram(program, given, dict.fromkeys(box, ()), tuple(box.values()))
                known[key] = [_shortened(bounds) for bounds in self.search(whole)]
            for name, bounds in zip(names, known[key]):
                if name in box:
                    box[name] = bounds
                found[name].append(bounds)
        return {self._operation(self.assigned[name]): bounds for name, bounds in found.items()}

    def _program(self, body: Sequence[tree.Statement], names: Sequence[str]) -> tree.Module:
        """Return a program of some statements whose value is a list of names, with the functions defined before the
        loop."""
        span = self.loop.span
        listed = tuple(tree.Name(span, name, "") for name in names)
        value = listed[0] if len(listed) == 1 else tree.List(span, listed)
        defined = [s for s in self.before if isinstance(s, tree.Define | tree.Import)]
        source = self.boxed.program.source
        return tree.Module(self.boxed.program.span, source, (*defined, *body, tree.Evaluate(span, value)))

    def _operation(self, statement: tree.Assign | tree.Augment) -> Span:
        """The source span of the operation whose result is assigned; it may be in the body of a function."""
        if isinstance(statement, tree.Augment):
            return error_span(statement)
        value = statement.value
        called = value.name if isinstance(value, tree.Call) else None
        for defined in self.before:
            if (
                isinstance(defined, tree.Define)
                and defined.name == called
                and isinstance(defined.body, tree.Expression)
            ):
                value = defined.body
        return error_span(value)

    def _at_the_start(self, name: str) -> Bounds:
        """Return the bounds of a name before the loop."""
        program = tree.Module(
            self.boxed.program.span,
            self.boxed.program.source,
            (*self.before, tree.Evaluate(self.loop.span, tree.Name(self.loop.span, name, ""))),
        )
        return _shortened(self.search(_over(self.boxed, program))[0])

    def _numbers(self) -> range:
        """Return the range of the loop. Raises UndecidedError where it varies over the box or is too long."""
        ends = []
        for argument in tree.positional(self.loop.iterable):  # type: ignore[arg-type]
            program = tree.Module(
                self.boxed.program.span,
                self.boxed.program.source,
                (*self.before, tree.Evaluate(argument.span, argument)),
            )
            bounds = self.search(_over(self.boxed, program))[0]
            if bounds.low != bounds.high:
                raise UndecidedError("a loop may end sooner or later")
            ends.append(int(bounds.low))
        found = range(*ends)
        if len(found) > _MOST_ROUNDS:
            raise UndecidedError("a loop has many rounds")
        return found


def _over(boxed: IntervalProgram, program: tree.Module) -> IntervalProgram:
    """A program over the same box, restricted to the inputs that it reads."""
    reads = scope.free_names(program)
    leaves: Mapping[str, Any] = {n: s for n, s in boxed.leaves.items() if n in reads}
    whole = tuple(boxed.whole[i] for n in leaves for i in boxed.inputs[n])
    return IntervalProgram(program, {n: v for n, v in boxed.fixed.items() if n in reads}, leaves, whole)


def _shortened(bounds: Bounds) -> Bounds:
    """Round bounds outward to `_DIGITS` digits. Raises UndecidedError for infinite bounds."""
    if not bounds.is_finite:
        raise UndecidedError("it cannot be told whether a number is finite")
    low, high = (from_text(intervals.text(n, _DIGITS, upward=up)) for n, up in zip(bounds, (False, True)))
    return Bounds(low, high)
