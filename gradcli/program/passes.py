"""Passes that transform a program into a cheaper one with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from gradcli.errors import EvaluationError
from gradcli.primitives.bind import assume
from gradcli.primitives.entries.comparisons import greater
from gradcli.program.ir import Atom, Equation, Program, Variable, check
from gradcli.timing import phase

if TYPE_CHECKING:
    from gradcli.program.builder import Builder


@phase("record")
def optimise(program: Program, *, fast: bool = False) -> Program:
    """Return `program` without dead code and common subexpressions, with constants folded and rewrites applied.

    Results keep every bit, including nan and infinities, unless `fast` permits rewrites that hold only for real
    numbers. Inputs are kept even where they are no longer read. Raises EvaluationError where a guard is false for every
    input.
    """
    # Equations that may fail are kept: eager evaluation raises their errors whether or not the result is used.
    cleaned = partial(without_dead_code, errors=True)
    passes: tuple[Callable[[Program], Program], ...] = (
        cleaned,
        guards_first,
        simplified_fast if fast else simplified,
        cleaned,
    )
    for rewrite in passes:
        program = check(rewrite(program))
    return program


def without_dead_code(program: Program, *, errors: bool = False) -> Program:
    """Keep the equations that an output or a guard depends on, and with `errors` also those that may fail."""
    failing = [e.output for e in program.equations if e.primitive.fails] if errors else ()
    needed = needed_variables(program.equations, (*program.outputs, *program.guards, *failing))
    return program._replace(equations=tuple(e for e in program.equations if e.output in needed))


def split_outputs(program: Program) -> Iterator[Program]:
    """Yield each output as a separate program without guards, in time proportional to the length of these programs."""
    places = {equation.output: place for place, equation in enumerate(program.equations)}
    for output in program.outputs:
        needed: set[int] = set()
        waiting = [output]
        while waiting:
            atom = waiting.pop()
            place = places.get(atom) if isinstance(atom, Variable) else None
            if place is not None and place not in needed:
                needed.add(place)
                waiting.extend(program.equations[place].inputs)
        equations = tuple(program.equations[place] for place in sorted(needed))
        yield program._replace(equations=equations, outputs=(output,), guards=())


def guards_first(program: Program) -> Program:
    """Move the equations of the guards before all others, so that rewrites of the rest can rely on the guards; x > 0
    comes first, as it implies others."""
    signs = [e.output for e in program.equations if e.primitive is greater and e.output in program.guards]
    for atoms in (program.guards, signs):
        needed = needed_variables(program.equations, atoms)
        first = [e for e in program.equations if e.output in needed]
        others = [e for e in program.equations if e.output not in needed]
        program = program._replace(equations=(*first, *others))
    return program


def needed_variables(equations: Iterable[Equation], atoms: Iterable[Atom]) -> set[Variable]:
    """Return the variables that `atoms` depend on, including variables among `atoms`."""
    needed = {atom for atom in atoms if isinstance(atom, Variable)}
    for equation in reversed(tuple(equations)):
        if equation.output in needed:
            for atom in equation.inputs:
                if isinstance(atom, Variable):
                    needed.add(atom)
    return needed


def simplified(program: Program) -> Program:
    """Share common subexpressions, fold constants and apply the exact rewrites."""
    return _rewritten(program, fast=False)


def simplified_fast(program: Program) -> Program:
    """Like `simplified`, with rewrites that hold only for real numbers."""
    return _rewritten(program, fast=True)


def _rewritten(program: Program, *, fast: bool) -> Program:
    # Loaded on demand: a loop that is run once is not rewritten.
    from gradcli.program.builder import Builder
    from gradcli.program.rewrites import EXACT, FAST, rewrites

    return _rebuilt(program, Builder(rewrites(EXACT, FAST) if fast else rewrites(EXACT)))


def _rebuilt(program: Program, builder: Builder) -> Program:
    """Add every equation to the builder, in the order of the program, with the new atoms of its operands."""
    become: dict[Variable, Atom] = {}
    for variable in program.inputs:
        builder.number(variable)
        become[variable] = variable
    guards = set(program.guards)
    for primitive, inputs, params, output in program.equations:
        atoms = [become[a] if isinstance(a, Variable) else a for a in inputs]
        become[output] = atom = builder.apply(primitive, atoms, params, output.shape, output.dtype)
        # A guard that is a truth value is 1 where it holds; a number only differs from 0.
        if output in guards and isinstance(atom, Variable) and atom.dtype == "bool":
            builder.true.add(atom)
    outputs = tuple(become[o] if isinstance(o, Variable) else o for o in program.outputs)
    found = [become[g] for g in program.guards]
    if not all(assume(g) for g in found if not isinstance(g, Variable)):
        raise EvaluationError("the program is good for no input: a condition that it was recorded with never holds")
    left = dict.fromkeys(g for g in found if isinstance(g, Variable))
    return Program(program.inputs, tuple(builder.definitions.values()), outputs, tuple(left))
