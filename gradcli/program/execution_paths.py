"""Records every execution path of a computation whose control flow depends on its inputs, and joins them by `where`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import LimitError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume
from gradcli.primitives.conversions import cast, reshape
from gradcli.primitives.entries.comparisons import isfinite, where
from gradcli.program import program_constants
from gradcli.program.builder import frozen
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import optimise
from gradcli.program.record import Tape, record

# Bound on the number of execution paths: nine independent binary choices.
_MOST_PATHS = 512

# Comparisons that are replaced by the negation of another one.
_OPPOSITES = {"greater_equal": "less", "less_equal": "greater", "not_equal": "equal"}

# Results by key.
Results = Mapping[tuple[str, ...], Any]


class ExecutionPath(NamedTuple):
    """One execution path of a computation.

    `conditions` are those it depends on, in order, and `path` says which of them hold; the outputs of `program` belong
    to `keys`; `finite` says whether all results are finite at the point of recording.
    """

    conditions: Sequence[Variable]
    path: tuple[bool, ...]
    program: Program
    keys: tuple[tuple[str, ...], ...]
    finite: bool


class _Decisions:
    """The decisions of one execution path: first those in `asked`, then those of the example numbers."""

    loops = False
    apart = False

    def __init__(self, asked: Sequence[bool]) -> None:
        self.asked = asked
        self.conditions: list[Variable] = []
        self.path: list[bool] = []
        self._known: dict[Hashable, bool] = {}
        self._definitions: dict[Variable, Equation] = {}
        # Equal applications of a primitive have the same number.
        self._numbers: dict[Variable, int] = {}
        self._applications: dict[Hashable, int] = {}

    def __call__(self, tape: Tape, condition: Variable, example: Any) -> bool:
        self._read(tape)
        key, opposite = self._key(condition)
        if key not in self._known:
            holds = self.asked[len(self.path)] if len(self.path) < len(self.asked) else arrays.all_true(example)
            self.conditions.append(condition)
            self.path.append(holds)
            self._known[key] = holds != opposite
        return self._known[key] != opposite

    def _read(self, tape: Tape) -> None:
        for equation in tape.equations[len(self._definitions) :]:
            operands = tuple([self._operand(a) for a in equation.inputs])
            application = (equation.primitive, operands, frozen(equation.params))
            self._definitions[equation.output] = equation
            self._numbers[equation.output] = self._applications.setdefault(application, len(self._applications))

    def _operand(self, atom: Atom) -> Hashable:
        return self._numbers.get(atom, atom) if isinstance(atom, Variable) else program_constants.key(atom)

    def _key(self, condition: Variable) -> tuple[Hashable, bool]:
        """Return a key that is equal for conditions that agree on real numbers, and whether the condition is its
        negation."""
        opposite = False
        equation = self._definitions.get(condition)
        while equation is not None and equation.primitive.name == "logical_not" and equation.inputs[0] in self._numbers:
            opposite = not opposite
            condition = equation.inputs[0]
            equation = self._definitions.get(condition)
        if equation is None or len(equation.inputs) != 2:
            return self._operand(condition), opposite
        name, operands = equation.primitive.name, [self._operand(a) for a in equation.inputs]
        if name in _OPPOSITES:
            name, opposite = _OPPOSITES[name], not opposite
        if name == "greater":
            name, operands = "less", operands[::-1]
        return (name, *operands), opposite


def record_paths(run: Callable[..., Results], points: Iterable[Mapping[str, Any]]) -> Sequence[ExecutionPath]:
    """Return every execution path of a computation, sorted by `path`.

    Each is recorded at one of `points`, if possible at one where its results are finite. Raises LimitError for too many
    paths, and what `run` raises.
    """
    given: list[Mapping[str, Any]] = []
    found: dict[tuple[bool, ...], ExecutionPath] = {}
    for point in points:
        given.append(point)
        recorded = _recorded(run, point, ())
        _keep(recorded, found)
        if not recorded.path and recorded.finite:
            break
    prefixes = {path[:i] for path in found for i in range(len(path) + 1)}
    pending = [*found]
    while pending:
        path = pending.pop()
        for i in range(len(path)):
            other = (*path[:i], not path[i])
            if other in prefixes:
                continue
            if len(found) == _MOST_PATHS:
                raise LimitError(f"what is computed here takes one of more than {_MOST_PATHS} execution paths")
            # None of the points takes this path by itself.
            new = _at_a_finite_point(run, given, other)
            _keep(new, found)
            prefixes.update(new.path[:j] for j in range(len(new.path) + 1))
            pending.append(new.path)
    return [found[path] for path in sorted(found)]


def _keep(recorded: ExecutionPath, found: dict[tuple[bool, ...], ExecutionPath]) -> None:
    if recorded.path not in found or (recorded.finite and not found[recorded.path].finite):
        found[recorded.path] = recorded


def _at_a_finite_point(
    run: Callable[..., Results], points: Sequence[Mapping[str, Any]], asked: Sequence[bool]
) -> ExecutionPath:
    for point in points:
        recorded = _recorded(run, point, asked)
        if recorded.finite:
            break
    return recorded


def _recorded(run: Callable[..., Results], point: Mapping[str, Any], asked: Sequence[bool]) -> ExecutionPath:
    decisions = _Decisions(asked)
    keys: list[tuple[str, ...]] = []

    def results(**given: Any) -> Sequence[Any]:
        found = run(**given)
        keys.extend(found)
        return [*found.values()]

    traced = record(results, point, decisions)
    finite = all(assume(isfinite(v)) for v in traced.values)
    return ExecutionPath(decisions.conditions, tuple(decisions.path), traced.program, tuple(keys), finite)


def join_paths(found: Sequence[ExecutionPath]) -> tuple[Sequence[tuple[str, ...]], Program]:
    """Return the keys of all results, and one program in which the conditions select each result.

    A result that a path lacks is 0 there.
    """
    if len(found) == 1:
        return found[0].keys, optimise(found[0].program)
    joint = _Joint()
    keys = [*dict.fromkeys(key for recorded in found for key in recorded.keys)]
    conditions: dict[tuple[bool, ...], Atom] = {}
    results: dict[tuple[bool, ...], Results] = {}
    for recorded in found:
        outputs = joint.outputs(recorded)
        results[recorded.path] = dict(zip(recorded.keys, outputs))
        for i, condition in enumerate(outputs[len(recorded.keys) :]):
            conditions.setdefault(recorded.path[:i], condition)
    for length in range(max(len(recorded.path) for recorded in found), 0, -1):
        for path in {p[:-1] for p in results if len(p) == length}:
            then, other = results.pop((*path, True)), results.pop((*path, False))
            results[path] = {k: joint.chosen(conditions[path], then.get(k, 0.0), other.get(k, 0.0)) for k in keys}
    program = Program(tuple(joint.inputs.values()), tuple(joint.equations), tuple(results[()].values()))
    return keys, optimise(program)


class _Joint:
    """The equations of all paths, over the same inputs."""

    def __init__(self) -> None:
        self.inputs: dict[str, Variable] = {}
        self.equations: list[Equation] = []

    def outputs(self, recorded: ExecutionPath) -> Sequence[Atom]:
        """The outputs of a path, followed by its conditions."""
        program = recorded.program
        program = optimise(program._replace(outputs=(*program.outputs, *recorded.conditions)))
        same = {v: self.inputs.setdefault(v.name or "", v) for v in program.inputs}

        def moved(atom: Atom) -> Atom:
            return same.get(atom, atom) if isinstance(atom, Variable) else atom

        self.equations += [e._replace(inputs=tuple([moved(a) for a in e.inputs])) for e in program.equations]
        return [moved(o) for o in program.outputs]

    def chosen(self, condition: Atom, then: Atom, other: Atom) -> Atom:
        if then is other:
            return then
        if arrays.shape(condition):
            condition = self._applied(reshape, [condition], {"shape": ()}, arrays.dtype_name(condition))
        if arrays.dtype_name(condition) != "bool":
            condition = self._applied(cast, [condition], {"dtype": "bool"}, "bool")
        shape = max(arrays.shape(then), arrays.shape(other))
        dtype = "complex128" if arrays.is_complex(then) or arrays.is_complex(other) else "float64"
        return self._applied(where, [condition, then, other], {}, dtype, shape)

    def _applied(
        self, primitive: Any, inputs: Sequence[Atom], params: Mapping[str, Any], dtype: str, shape: tuple[int, ...] = ()
    ) -> Variable:
        output = Variable(shape, dtype)
        self.equations.append(Equation(primitive, tuple(inputs), params, output))
        return output
