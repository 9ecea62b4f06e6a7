"""`solve`: the roots of equations, and their derivatives by the constants in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from gradcli import arrays, limits
from gradcli.calculus.implicit import implicit_derivatives
from gradcli.compiled.evaluated import check_digits, in_namespace
from gradcli.errors import (
    BindingError,
    EvaluationError,
    LimitError,
    UsageError,
    as_bool,
    did_you_mean,
    expect,
)
from gradcli.evaluation import python_values
from gradcli.io.text_tables import Table, members, number_text
from gradcli.language.equations import Equations, read_equations
from gradcli.language.names import binders, scope
from gradcli.language.syntax import parse_equations, tree
from gradcli.limits import MAX_ELEMENTS, MAX_PRECISION, MAX_STEPS
from gradcli.models import checked_arguments, dense_matrices
from gradcli.models.equations.root_search import Candidate, balanced_sizes, classified, search, sizes_of
from gradcli.models.equations.rounding_noise import is_noisy, with_rounded_marked
from gradcli.models.equations.sign_changes import (
    AllCrossings,
    ScalarEquation,
    SignChange,
    all_crossings,
    changes_sign,
    isolated_zeros,
    root_between,
    root_or_jump_between,
)
from gradcli.models.equations.systems import ComplexSystem, EquationSystem, polynomial_roots
from gradcli.models.results import MAY_BE_NULL, Iteration, ProgressCallback, Reported
from gradcli.named_tuples import NamedTuple

# The default start of an unknown.
START = 1.0
_ORDERS = (0, 1, 2)
_LOST = " whose derivatives are too large or too small for floats"
# Upper bound of the intervals of zeros that a message lists.
_MOST_STRETCHES = 3
_COARSE = "floats that are so far apart that"
_SINGULAR = " at which the Jacobian is singular: it has no derivatives, and few digits are right"
# Upper bound of the boxes in a table.
_MOST_LEFT = 20
# Upper bound of the boxes that a result lists.
_MOST_TOLD = 100
# The largest denominator of the fractions that are tried as exact roots at the ends of a range.
_MAX_DENOMINATOR = 1_000

# The lower and the upper end by name.
_Box = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Root:
    """A root of equations.

    `point` holds the unknowns by name, and `residual` is the largest difference of the two sides of an equation.
    `condition` is the condition number of the Jacobian with its rows and unknowns scaled. `derivatives` holds, for each
    unknown, the derivatives by names joined with commas. The last two are None where the Jacobian is singular. With
    `prove`, `box` holds for each unknown the ends of a range in which this is the only root.
    """

    point: dict[str, Any]
    residual: Any
    condition: float | None = field(metadata=MAY_BE_NULL)
    derivatives: dict[str, dict[str, Any]] | None = field(default=None, metadata=MAY_BE_NULL)
    box: _Box | None = None


@dataclass(frozen=True)
class Roots(Reported):
    """The roots found: those in a bracket, or one from a start. Where `converged` is False, the only entry is the point
    with the least residual, and `message` says why."""

    roots: list[Root]
    converged: bool
    message: str
    proof: RootsProof | None = None

    def report(self) -> Sequence[Table]:
        return [*root_tables(self, told=not self.roots or self.proof is not None)]


class RootProblem(NamedTuple):
    """The input of `solve`: the equations, the starts of the unknowns or a range of the only one, the values of all
    other names, the constants `wrt` to differentiate by (None for all), and the order of the derivatives."""

    equations: Equations
    starts: Mapping[str, Any]
    constants: Mapping[str, Any]
    wrt: Sequence[str] | None = None
    order: int = 1
    range: tuple[float, float] | None = None
    # Ranges of all unknowns in which the list of roots is to be proved.
    box: Mapping[str, tuple[float, float]] | None = None
    all: bool = False
    seed: int = 0
    proof: ProofOptions | None = None
    # Whether no start was given for the only unknown, so that roots are looked for among all floats.
    everywhere: bool = False


class ProofOptions(NamedTuple):
    """The number of proved digits, the largest number of digits to compute with, and a function that returns the
    constants in balls at the current precision."""

    digits: int
    most: int
    bindings: Callable[[], Mapping[str, Any]]


def solve(
    equations: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    start: Mapping[str, Any] | None = None,
    bracket: Mapping[str, tuple[float, float]] | None = None,
    unknowns: Sequence[str] | str = (),
    all: bool = False,
    prove: bool = False,
    wrt: Sequence[str] | str | None = None,
    order: int = 1,
    seed: int = 0,
    digits: int | None = None,
    max_precision: int = MAX_PRECISION,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Roots:
    """A root of equations, `solve("x**3 + a*x = b", start={"x": 1}, a=2, b=5)`, and its derivatives by the constants.

    Equations are `left = right`, `left == right`, or expressions that are to be 0, separated by `;`. `name = …` is a
    definition where the name is neither unknown nor given. The unknowns are the names with a `start`, a number or an
    array; those in `unknowns`, which start at 1; or the one with a `bracket`, in which a root is guaranteed where the
    sign changes, and with `all` every change of sign is found. Derivatives are by the names `wrt`, or all constants
    where that is None, up to `order`, at most 2, by the implicit function theorem.

    With `all` and `prove`, several unknowns have brackets, and the list of roots in this box is proved: `proof.complete`
    says whether it has all of them, and `proof.left` has the boxes that may contain more.

    With `digits`, the numbers of a root are texts with that many proved digits. Constants that are texts are then exact
    decimals, and floats exact binary numbers.

    Where no root is found, `converged` is False. Raises ProgramSyntaxError for an invalid equation, UsageError unless
    there are as many equations as unknowns, EvaluationError where there is no value at the start, or no change of sign
    in the bracket.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    with limits.within(max_steps, max_elements):
        expect(equations, str, "equations are a text")
        constants = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
        starts = dict.fromkeys(
            checked_arguments.names(unknowns, "'unknowns'"), START
        ) | checked_arguments.mapping_by_name(start, "'start'")
        ranges: dict[str, tuple[float, float]] = {}
        for name, given in checked_arguments.mapping_by_name(bracket, "'bracket'").items():
            ranges[name] = checked_arguments.pair(given, f"the bracket of '{name}'")
            starts[name] = ranges[name][0]
        twice = next((name for name in starts if name in constants), None)
        if twice is not None:
            raise BindingError(f"'{twice}' has a value and is unknown", hint="give it one of them")
        check_digits(digits, max_precision)
        proof = None if digits is None else ProofOptions(digits, max_precision, partial(in_namespace, constants))
        known = in_namespace(constants)
        found = in_namespace(starts)
        checked_arguments.integer(seed, "'seed'", 0)
        by = None if wrt is None else checked_arguments.names(wrt, "'wrt'")
        whole = checked_arguments.integer(order, "'order'", 0)
        posed = question_of(
            equations, found, known, by, whole, *bracket_and_box(ranges, as_bool(prove, "prove")), as_bool(all, "all"),
            seed, proof,
        )  # fmt: skip
        return solve_problem(posed)


def bracket_and_box(
    ranges: Mapping[str, tuple[float, float]], is_proved: bool
) -> tuple[tuple[float, float] | None, Mapping[str, tuple[float, float]] | None]:
    """The bracket of one unknown, or the box of all whose roots are to be proved. Raises BindingError for two
    brackets."""
    if is_proved:
        return None, ranges
    if len(ranges) > 1:
        raise BindingError(
            "there are two brackets", hint="give a bracket to one unknown alone, or add --all --prove for a whole box"
        )
    return next(iter(ranges.values()), None), None


def question_of(text: str, starts: Mapping[str, Any], constants: Mapping[str, Any], *others: Any) -> RootProblem:
    """The question for equations as text. Where no name has a start, the only name without a value is the unknown."""
    if starts:
        return RootProblem(read_equations(text, [*starts, *constants]), starts, constants, *others)
    equations, name = read_with_unknown(text, constants)
    if name is None:
        return RootProblem(equations, starts, constants, *others)
    return RootProblem(equations, {name: START}, constants, *others)._replace(everywhere=True)


def solve_problem(question: RootProblem, watch: ProgressCallback = lambda _: None) -> Roots:
    """The roots that a question asks for, within the limits of a run; see `solve`."""
    _check(question)
    if any(map(arrays.is_complex, question.starts.values())):
        return _complex_roots(question, watch)
    system = EquationSystem(question.equations, question.starts, question.constants)
    start = system.packing.flat(question.starts)
    if question.box is not None:
        return _in_box(question, question.box, system, start, watch)
    if question.everywhere and len(start) == 1 == len(question.equations.places):
        return _anywhere(question, system, start, watch)
    if question.range is None:
        system.check(start)
        found = search(system, start, question.seed, watch)
        return _of_search(question, system, found)
    system.check_count(start)
    curve = ScalarEquation(system)
    if question.all:
        seen = all_crossings(curve, *question.range, partial(is_noisy, system))
        roots = _of_all(question, system, with_rounded_marked(system, seen.found, *question.range))
        return replace(roots, message=", ".join([roots.message, *_incompleteness_notes(seen, curve.name)]))
    (crossing,) = with_rounded_marked(system, [root_between(curve, *question.range)], *question.range)
    roots = _of_all(question, system, [crossing])
    if crossing.end is not None:
        return replace(roots, message=_stretch(crossing, curve.name))
    if not roots.converged:
        what = (
            f"{_COARSE} no root can be told" if crossing.kind == "coarse" else f"a {crossing.kind}, and not at a root"
        )
        return replace(roots, message=f"the sign changes at {what}")
    singular = any(root.condition == math.inf for root in roots.roots)
    lost = _has_degenerate_jacobian(question, system, system.packing.flat(roots.roots[0].point))
    return replace(roots, message="a root in the bracket" + (_SINGULAR if singular else _LOST * lost))


def _complex_roots(question: RootProblem, watch: ProgressCallback) -> Roots:
    """The root from a complex start, or with `all` all complex roots of a polynomial."""
    if question.proof is not None:
        raise UsageError("there are no proved digits of complex roots", hint="leave out --digits")
    system = ComplexSystem(question.equations, question.starts, question.constants)
    start = system.packing.flat(question.starts)
    system.check(start)
    if not question.all:
        return _of_search(question, system, search(system, start, question.seed, watch))
    (name,) = [*question.starts][:1]
    points = [system.packing.flat({name: z}) for z in polynomial_roots(system)]
    roots = [_root(question, system, classified(system, point, point)) for point in points]
    return Roots(roots, True, f"{len(roots)} complex root{'s' * (len(roots) != 1)}, each as often as its multiplicity")


def _in_box(
    question: RootProblem,
    box: Mapping[str, tuple[float, float]],
    system: EquationSystem,
    start: Any,
    watch: ProgressCallback,
) -> Roots:
    """All roots in a box, which is proved."""
    system.check_count(start)
    found = _all_roots(system, box, watch)
    roots = [
        replace(_root(question, system, classified(system, point, point)), box=around)
        for point, around in zip(found.points, found.boxes)
    ]
    return Roots(roots, bool(roots) and found.proof.complete, found.message, found.proof)


def _anywhere(question: RootProblem, system: EquationSystem, start: Any, watch: ProgressCallback) -> Roots:
    """The roots of one equation whose only unknown has neither a start nor a bracket."""
    system.check_count(start)
    curve = ScalarEquation(system)
    seen = crossings_everywhere(curve, partial(is_noisy, system))
    near = with_rounded_marked(system, seen.near.found, -NEAR, NEAR)
    far = [
        c for crossing in seen.beyond for c in with_rounded_marked(system, [crossing], crossing.point, crossing.point)
    ]
    roots = _of_all(question, system, sorted([*near, *far]))
    parts = [roots.message, *_incompleteness_notes(seen.near, curve.name)]
    if seen.points is None and roots.converged:
        parts.append(
            f"those between {curve.name}={-NEAR:g} and {curve.name}={NEAR:g}; to look beyond takes too long: "
            f"{curve.name}=LOW..HIGH --all finds those of a range"
        )
    elif seen.points is None:
        found = _of_search(question, system, search(system, start, question.seed, watch))
        if found.converged:
            return replace(found, message=f"{found.message}; there may be others")
        roots, parts = found, [found.message]
    elif seen.left_out:
        parts.append(
            f"those between {curve.name}={-NEAR:g} and {curve.name}={NEAR:g}; beyond are more, as {seen.left_out:,} changes of "
            f"sign show: {curve.name}=LOW..HIGH --all finds those of a range"
        )
    elif roots.converged and (seen.beyond or any(c.kind != "root" for c in near)):
        parts.append(
            f"and there may be more below {curve.name}={-NEAR:g} and above {curve.name}={NEAR:g}, where {seen.points:,} points "
            "were looked at"
        )
    elif roots.converged:
        parts.append(f"and no other change of sign at {seen.points:,} points of all sizes")
    else:
        found = _of_search(question, system, search(system, start, question.seed, watch))
        if found.converged:
            return replace(found, message=f"{found.message}; signs do not change there, and there may be others")
        parts = [found.message, f"and the sign does not change among {seen.points:,} points of all sizes"]
        roots = found
    return replace(roots, message=", ".join(parts))


def _has_degenerate_jacobian(question: RootProblem, system: EquationSystem, point: Any) -> bool:
    """Return whether derivatives of a root are asked for but cannot be computed because the Jacobian overflows or
    underflows."""
    return bool(question.order and _by(question) and question.proof is None and system.is_lost(system.jacobian(point)))


def _check(question: RootProblem) -> None:
    program, starts = question.equations.program, question.starts
    names = {*starts, *question.constants}
    reads = scope.free_names(program)
    scope.check_names(program, names)
    for name in names:
        if name not in reads:
            hint = did_you_mean(name, reads, f"they read {', '.join(reads) or 'no names'}")
            raise BindingError(f"the equations do not read '{name}'", hint=hint)
    if not sum(map(arrays.size, starts.values())):
        free = [n for n in reads if n not in scope.CONSTANTS and n not in question.constants]
        name = free[0] if free else "x"
        hint = f"give one a start, as in {name}~1"
        if not free and len(question.constants) == 1:
            (given, value), *_ = question.constants.items()
            start = f"{given}~…" if arrays.shape(value) else f"{given}~{_short(value)}"
            hint = f"{given}=… is a value that stays: write {start} to start there, or {given}=0..10 for a range"
        if len(free) > 1:
            hint += f", and the others too, or values, as in {free[1]}=1"
        raise UsageError("there is no unknown", hint=hint)
    if question.order not in _ORDERS:
        raise UsageError("the order of the derivatives of a root is 0, 1 or 2")
    if question.box is not None:
        _check_box(question, question.box)
        return
    if question.range is None:
        if question.all and not question.everywhere and not any(map(arrays.is_complex, starts.values())):
            raise UsageError(
                "all roots are those in a range",
                hint=f"give one, as in {next(iter(starts))}=0..5, or a complex start for all roots of a polynomial",
            )
        return
    low, high = question.range
    if len(starts) > 1 or arrays.shape(next(iter(starts.values()))):
        raise UsageError("a bracket is for one unknown number", hint="give the unknowns starts, as in x~1 y~1")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"there is no number in the bracket from {low:g} to {high:g}", hint="write x=0..5")


def _short(number: Any) -> str:
    return number_text(number) if arrays.is_complex(number) else f"{float(number):.12g}"


def _check_box(question: RootProblem, box: Mapping[str, tuple[float, float]]) -> None:
    if not question.all:
        raise UsageError("a proof is of all roots", hint="add --all")
    for name in question.starts:
        if name not in box:
            raise UsageError(f"a proof needs a range of '{name}'", hint=f"write {name}=-10..10")
    for name, (low, high) in box.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(
                f"there is no number in the range of '{name}' from {low:g} to {high:g}", hint="write x=0..5"
            )


def _of_search(question: RootProblem, system: EquationSystem, found: Candidate) -> Roots:
    if not found.is_root:
        small = "at this point left - right rounds to 0, which shows no root"
        reason = f"the smallest residual, {found.residual:.6g}, is at this point"
        point = Root(system.packing.named(found.point), found.residual, None)
        ended = f", as far as the limits went: {found.limit}" if found.limit else ""
        return Roots([point], False, f"no root was found: {small if found.is_rounded else reason}{ended}")
    message = "a root"
    if found.is_singular:
        message += _SINGULAR
    elif _has_degenerate_jacobian(question, system, found.point):
        message += _LOST
    if not found.is_isolated:
        message = "a root beside others, so that it has no derivatives: the Jacobian is singular"
    return Roots([_root(question, system, found)], True, message)


def _of_all(question: RootProblem, system: EquationSystem, crossings: Sequence[SignChange]) -> Roots:
    xp = arrays.numpy_namespace()
    roots, others, double = [], {"pole": 0, "jump": 0, "coarse": 0}, 0
    stretches = [c for c in crossings if c.end is not None]
    for point, kind, end in crossings:
        if kind in others:
            others[kind] += 1
            continue
        if end is not None:
            ends = [xp.asarray([x]) for x in (point, end) if kind == "stretch"]
            roots += [_root(question, system, Candidate(x, xp.zeros(1), 0.0, True, is_singular=True)) for x in ends]
            continue
        vector = xp.asarray([point])
        found = classified(system, vector, vector)
        if kind == "double root" and not found.is_root:
            continue
        double += kind == "double root"
        roots.append(_root(question, system, found._replace(is_singular=found.is_singular or kind == "double root")))
    parts = [f"{len(roots)} root{'s' * (len(roots) != 1)}"]
    parts += [f"of which {double} only touch{'es' * (double == 1)} 0"] * bool(double)
    places = {"pole": "poles", "jump": "jumps", "coarse": f"{_COARSE} they show no roots"}
    parts += [f"{n} change{'s' * (n != 1)} of sign at {places[kind]}" for kind, n in others.items() if n]
    parts += [_stretch(c, next(iter(question.starts))) for c in stretches[:_MOST_STRETCHES]]
    parts += [f"and so at {len(stretches) - _MOST_STRETCHES:,} places more"] * (len(stretches) > _MOST_STRETCHES)
    return Roots(roots, bool(roots), ", ".join(parts))


def _incompleteness_notes(seen: AllCrossings, name: str) -> list[str]:
    """Messages that say why a list of roots is or may be incomplete."""
    parts = []
    if seen.left_out:
        parts.append(f"and {seen.left_out:,} changes of sign more: the list is not whole")
    if seen.untold:
        low, high = seen.untold[0][0], seen.untold[-1][1]
        parts.append(f"and there may be more between {name}={low:.6g} and {name}={high:.6g}")
    return parts


def _stretch(found: SignChange, name: str) -> str:
    where = f"from {name}={found.point:.6g} to {name}={found.end:.6g}"
    if found.point == found.end:
        where = f"at {name}={found.point:.6g}"
    if found.kind == "rounded":
        return f"left - right rounds to 0 {where}, which shows no root"
    return f"left - right is 0 {where}, the ends of which are given"


def _root(question: RootProblem, system: EquationSystem, found: Candidate) -> Root:
    if question.proof is not None:
        return _proved(question, question.proof, system, found)
    named = system.packing.named(found.point)
    condition = math.inf if found.is_singular else _condition(question, system, found.point)
    derivatives = None
    if question.order:
        names = system.depends(found.point, _by(question))
        by = {name: question.constants[name] for name in names}
        missing = {name: dict.fromkeys(_by(question)) for name in named}
        if found.is_singular or system.is_lost(system.jacobian(found.point)):
            derivatives = missing
        else:
            made = implicit_derivatives(system.function, named, by, question.order)
            derivatives = {
                n: missing[n] | {key: python_values.plain(d, {}) for key, d in made[n].items()} for n in named
            }
    return Root(named, found.residual, condition, derivatives)


def _proved(question: RootProblem, proof: ProofOptions, system: EquationSystem, found: Candidate) -> Root:
    # python-flint is needed only where digits are asked for.
    from gradcli.models.equations.proved_roots import prove

    by = _by(question)
    names = system.depends(found.point, by) if question.order else []
    proved = prove(system, found.point, proof.bindings, names, question.order, proof.digits, proof.most)
    condition = _condition(question, system, found.point)
    derivatives = {name: {**dict.fromkeys(by), **proved.derivatives[name]} for name in proved.derivatives} or None
    return Root(proved.point, "0", condition, derivatives)


def _by(question: RootProblem) -> list[str]:
    """The constants to differentiate by."""
    if question.wrt is None:
        return [name for name, value in question.constants.items() if arrays.is_inexact(value)]
    for name in question.wrt:
        if name not in question.constants:
            raise BindingError(f"cannot differentiate by '{name}', which is no constant with a value")
    return list(question.wrt)


def _condition(question: RootProblem, system: EquationSystem, point: Any) -> float:
    """The least condition number over several scalings of the unknowns: by their values, by their starts, and by
    balanced sizes for unknowns near 0."""
    xp = arrays.numpy_namespace()
    starts = [point] if question.range is not None else [point, system.packing.flat(question.starts)]
    sizes = [sizes_of(point, start) for start in starts]
    with arrays.quiet():
        jacobians = [system.scaled_jacobian(point, each) for each in sizes]
        balanced = balanced_sizes(system, point, sizes[-1], jacobians[-1])
        jacobians.append(jacobians[-1] * (balanced / sizes[-1]))
    conditions = []
    for jacobian in jacobians:
        with arrays.quiet():
            scaled = jacobian / xp.max(xp.abs(jacobian), axis=1, keepdims=True)
        # Matrices with nonfinite elements have no singular values.
        conditions.append(dense_matrices.condition_number(scaled) if xp.all(xp.isfinite(scaled)) else math.inf)
    return min(conditions)


# --- the unknown of equations without a start


def read_with_unknown(text: str, known: Collection[str]) -> tuple[Equations, str | None]:
    """The equations, and the only name in them that has no value and is not in `known`, or None unless there is exactly
    one. Raises what `read_equations` raises."""
    names = _names(text) - {*known} - {*scope.CONSTANTS}
    if len(names) == 1:
        # With the unknown known, x = cos(x) is an equation, and not a definition.
        (name,) = names
        return read_equations(text, [name, *known]), name
    equations = read_equations(text, known)
    free = [n for n in scope.free_names(equations.program) if n not in scope.CONSTANTS and n not in known]
    return equations, free[0] if len(free) == 1 else None


def _names(text: str) -> set[str]:
    """All names that are read or defined in a text, without the variables of functions within an expression."""
    found: set[str] = set()
    for said in parse_equations(text):
        waiting: list[tuple[tree.SyntaxNode, frozenset[str]]]
        waiting = [(part, frozenset()) for part in said.sides or said.statements or ()]
        while waiting:
            node, bound = waiting.pop()
            if isinstance(node, tree.Name) and not node.module:
                found |= {node.id} - bound
            elif isinstance(node, tree.BoundName | tree.Define | tree.Parameter):
                found |= {node.name} - bound
            elif isinstance(node, tree.Lambda):
                bound |= binders.local_names(node)
            elif isinstance(node, tree.Comprehension):
                bound = bound.union(*(binders.bound_names(c.target) for c in node.clauses))
            waiting += [(child, bound) for child in tree.children(node)]
    return found


# --- all roots without a start or a range: those near 0, and those where the sign changes

# Roots of at most this absolute value are looked for as in a range.
NEAR = 10.0
# Beyond it, the equation is sampled at `_POINTS` points per power of 2, up to 2**`_LAST`.
_POINTS, _LAST = 32, 1023
# If there are more sign changes beyond `NEAR`, the function oscillates, and they are only counted.
_MOST_BEYOND = 50


class Everywhere(NamedTuple):
    """The crossings near 0 and beyond `NEAR`, the number of sign changes beyond `NEAR` that were only counted
    (`left_out`), and the number of sample points, None where those beyond `NEAR` would take too long."""

    near: AllCrossings
    beyond: list[SignChange]
    left_out: int
    points: int | None


def crossings_everywhere(curve: ScalarEquation, is_noisy: Callable[[float], bool]) -> Everywhere:
    """The sign changes and double roots of an equation anywhere among the floats; double roots only up to `NEAR`."""
    xp = arrays.numpy_namespace()
    near = all_crossings(curve, -NEAR, NEAR, is_noisy)
    exponents = xp.arange(xp.log2(NEAR), _LAST, 1.0 / _POINTS)
    try:
        with limits.optional_budget():
            beyond, left_out = _beyond(curve, exponents)
    except LimitError:
        # An integral, for instance, takes long up to the largest floats.
        return Everywhere(near, [], 0, None)
    return Everywhere(near, sorted(beyond), left_out, 2 * len(exponents) + len(near.found))


def _beyond(curve: ScalarEquation, exponents: Any) -> tuple[list[SignChange], int]:
    """The crossings at powers of 2 with these exponents and of both signs, and the number of those that were only
    counted."""
    xp = arrays.numpy_namespace()
    beyond: list[SignChange] = []
    left_out = 0
    with arrays.quiet():
        for side in (-1.0, 1.0):
            points = xp.sort(side * 2.0**exponents)
            values = curve.sampled(points)[0]
            changes = xp.flatnonzero(changes_sign(values))
            zeros = isolated_zeros(values)
            if len(changes) + len(zeros) > _MOST_BEYOND:
                left_out += len(changes) + len(zeros)
                continue
            beyond += [SignChange(float(points[n]), "root") for n in zeros]
            for n in changes:
                ends = [float(each[k]) for each in (points, values) for k in (n, n + 1)]
                beyond.append(root_or_jump_between(curve, *ends))
    return beyond, left_out


def root_tables(found: Any, *, listed: bool = False, told: bool = False) -> Iterator[Table]:
    """The tables of the roots: a row for each where there are several or `listed` is true, and the message where `told`
    is, or where a root has no derivatives."""
    listed = listed or len(found.roots) > 1
    if listed and found.roots:
        rows = [_row(root) for root in found.roots]
        yield Table((*rows[0],), [(*row.values(),) for row in rows])
    if found.proof is not None and found.proof.left:
        yield _boxes_left(found.proof)
    for root in () if listed else found.roots:
        yield Table((), [(name, number_text(value)) for name, value in root.point.items()])
        yield members({"residual": root.residual, "condition": root.condition})
        if root.derivatives:
            yield Table(("of", "by", "derivative"), [*_derivatives(root)])
    if found.converged and (told or any(root.condition == math.inf for root in found.roots)):
        yield Table((), [("found", found.message)])


def _boxes_left(proof: Any) -> Table:
    """The boxes that may contain more roots, one a row."""
    rows = [tuple(f"{number_text(a)} to {number_text(b)}" for a, b in box.values()) for box in proof.left[:_MOST_LEFT]]
    more = len(proof.left) - len(rows) + proof.unlisted
    names = [f"perhaps {name}" for name in proof.left[0]]
    if more:
        rows.append((f"… {more:,} more", *[""] * (len(names) - 1)))
    return Table((*names,), rows)


def _row(root: Any) -> dict[str, str]:
    """A root of one unknown as a table row: cells by column title."""
    told = {**root.point, "residual": root.residual, "condition": root.condition}
    if root.box is not None:
        told["within"] = max(high - low for low, high in root.box.values())
    by = {f"{name} by {key}": text for name, key, text in _derivatives(root)}
    return {name: number_text(value) for name, value in told.items()} | by


def _derivatives(root: Any) -> Iterator[tuple[str, str, str]]:
    derivatives: Mapping[str, Mapping[str, Any]] = root.derivatives or {}
    for name, by in derivatives.items():
        for key, value in by.items():
            yield name, key, number_text(value)


@dataclass(frozen=True)
class RootsProof:
    """The proof that a list has the roots in a box: whether it is `complete`, the boxes that may contain more (`left`),
    the number of these that are not listed (`unlisted`), and the number of `boxes` that were examined."""

    complete: bool
    left: list[_Box]
    unlisted: int
    boxes: int


class ProvedRoots(NamedTuple):
    """Points `[n]` with the boxes around them in which each is the only root, the proof, and the message."""

    points: Sequence[Any]
    boxes: Sequence[_Box]
    proof: RootsProof
    message: str


def _all_roots(
    system: EquationSystem, ranges: Mapping[str, tuple[float, float]], watch: ProgressCallback
) -> ProvedRoots:
    """Every root of a system in the box of the ranges, within half of the limits of the run.

    Raises EvaluationError where control flow depends on the unknowns.
    """
    # python-flint is needed only where something is to be proved.
    from gradcli.proofs.box_programs import BoxProgram, needing_one_path
    from gradcli.proofs.root_isolation import RootIsolation

    np = arrays.numpy_namespace()
    low, high = (np.array([ranges[name][k] for name in system.packing.shapes], float) for k in range(2))
    program = system.equations.program
    # A point in which the box has no symmetry, where derivatives may vanish.
    example = low + 0.41 * (high - low)
    with needing_one_path(program, "the unknowns"):
        boxed = BoxProgram(program, system.packing.shapes, system.constants, example)
    with limits.optional_budget():
        found = RootIsolation(boxed, low, high).run(lambda boxes, roots: watch(Iteration(boxes, float(roots))))
    points, boxes, open_ = [], [], 0
    for least, most in sorted(found.roots, key=lambda box: tuple(box[0])):
        where = _place(system, least, most, low, high)
        if where == "outside":
            continue
        open_ += where == "open"
        points.append(np.clip(0.5 * least + 0.5 * most, low, high))
        boxes.append(_named(system, least, most))
    left = [_named(system, *box) for box in found.left[:_MOST_TOLD]]
    proof = RootsProof(not found.left and not open_, left, len(found.left) - len(left), found.boxes)
    return ProvedRoots(points, boxes, proof, _message(len(points), open_, len(found.left), found.ended))


def _place(system: EquationSystem, least: Any, most: Any, low: Any, high: Any) -> str:
    """Return where the only root in a box lies relative to the ranges: "inside", "outside", or "open" if undecided."""
    if ((low <= least) & (most <= high)).all():
        return "inside"
    exact = _exact_root(system, least, most)
    if exact is None:
        return "open"
    # The end 0.1 is a float above 1/10, and this root is in the range: the roots are rounded like the ends.
    return "inside" if all(a <= float(x) <= b for x, a, b in zip(exact, low, high)) else "outside"


def _exact_root(system: EquationSystem, least: Any, most: Any) -> list[Fraction] | None:
    """The root in a box as simple fractions, where these solve the equations exactly; else None."""
    from flint import fmpq

    from gradcli.arrays.flint.balls import Balls, exact
    from gradcli.proofs import digits as proving

    simple = [Fraction(float(0.5 * a + 0.5 * b)).limit_denominator(_MAX_DENOMINATOR) for a, b in zip(least, most)]
    if not all(Fraction(float(a)) <= x <= Fraction(float(b)) for x, a, b in zip(simple, least, most)):
        return None
    with proving.computing():
        named = {name: Balls(fmpq(x.numerator, x.denominator)) for name, x in zip(system.packing.shapes, simple)}
        try:
            value = system.function(named)
        except EvaluationError:
            return None
        numbers = value.numbers.ravel() if isinstance(value, Balls) else [exact(value)]
        return simple if all(type(x) is fmpq and x == 0 for x in numbers) else None


def _named(system: EquationSystem, least: Any, most: Any) -> _Box:
    """A box by name, whose ends are decimals outside of it."""
    names = system.packing.labels()
    return {
        name: (_outward(float(a), -math.inf), _outward(float(b), math.inf)) for name, a, b in zip(names, least, most)
    }


def _outward(end: float, side: float) -> float:
    return end if end.is_integer() else math.nextafter(end, side)


def _message(roots: int, open_: int, left: int, ended: str | None) -> str:
    count = f"{roots:,} root{'s' * (roots != 1)}" if roots else "no root"
    if not left and not open_:
        return (
            f"{count}, which {'are' if roots > 1 else 'is'} proved to be all in the box"
            if roots
            else ("no root in the box, which is proved")
        )
    parts = [f"{count} that {'are' if roots > 1 else 'is'} proved" if roots else "no root that is proved"]
    if open_:
        parts.append(f"of which {open_:,} at an end of a range may lie outside")
    if left:
        parts.append(f"and {left:,} box{'es' * (left != 1)} that may contain more")
    return ", ".join(parts) + (f" ({ended})" if ended else "")
