"""Rolls loops of recorded programs: the body runs once, on traced values, and the loop becomes one equation."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator, Scope, Task, block
from gradcli.language.interpreter.mutable_references import HiddenReference, MutableReference
from gradcli.language.interpreter.rolled.filled_tensors import (
    FilledReference,
    FilledTensor,
    GrowingItems,
    GrownList,
    replace_elements,
)
from gradcli.language.interpreter.rolled.traced_loops import (
    NotRolledError,
    TracedLoop,
    attempt,
    changes_list,
    is_number,
    may_be_rolled,
    zeros,
)
from gradcli.language.interpreter.values import Value, as_bool, as_tensor_or_number
from gradcli.language.names import scope as scope_of_program
from gradcli.language.syntax import tree
from gradcli.loops.body_tracing import Traced, example_of
from gradcli.loops.rolling import Carried, Rounds, guards_held, needed_places
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.comparisons import greater
from gradcli.primitives.entries.indexing import index

# The key of the value of the last statement, which is not a name of the language.
_VALUE = "value of the loop"
# What the keys of rows begin with that are passed on of a tensor or list, before its name and the number of rounds since
# they were written.
_ROW = "row of "

Loop = tree.For | tree.While


def run(machine: Evaluator, node: Loop, values: Value, scope: Scope, count: int) -> tuple[Value] | None:
    """Run a loop of at most `count` rounds, over `values` if it is `for`, as one equation, and return its value.

    None where it has to be run round by round.
    """
    if not may_be_rolled(machine.program) or _functions_change_lists(machine.program, node):
        return None
    before = dict(scope.names)

    def restore() -> None:
        scope.names.clear()
        scope.names.update(before)

    def traced(constants: Collection[int]) -> Value:
        restore()
        return _Rolling(machine, node, values, scope, count, constants).run()

    found = attempt(machine, node, traced)
    if found is None:
        restore()
    return found


class _Rolling(TracedLoop):
    """A loop of statements that is being traced."""

    def __init__(
        self, machine: Evaluator, node: Loop, values: Value, scope: Scope, count: int, constants: Collection[int]
    ) -> None:
        super().__init__(machine, values if isinstance(values, range) else range(count), constants)
        self.node, self.scope = node, scope
        # The names that are assigned in each round, with what they go along.
        self.targets = _targets(node, values)
        # Whether the value of the loop, that of the last statement that it ran, may be used.
        self.has_value = node in _last_statements(machine.program)
        # Whether the loop may end before its last round.
        self.leaves = isinstance(node, tree.While) or scope_of_program.may_be_left(node)
        # The names of lists and tensors of which each round may change elements.
        self.changed: set[str] = set()
        # By name, the lists to which each round appends, and the lists and tensors of which it writes a row.
        self.filled: dict[str, FilledTensor] = {}

    def run(self) -> Value:
        lists = _appended_lists(self.node.body)
        names = _assigned_names(self.node.body, lists)
        # The value of a loop that was left is that of no statement.
        if names is None or not self.targets.keys().isdisjoint(names) or (self.leaves and (self.has_value or lists)):
            raise NotRolledError
        grown: dict[str, Value] = {name: self.scope.names.get(name) for name in lists}
        if any(type(v) is not ProgramList or (lists[n].reads and not _is_changeable(v)) for n, v in grown.items()):
            raise NotRolledError
        if self.leaves:
            names += self.targets
        changeable = {n: self.scope.names.get(n) for n in _filled_names(self.node.body, self.targets)}
        filled = {n: v for n, v in changeable.items() if _is_changeable(v)}
        if filled and self.leaves:
            raise NotRolledError
        self.filled = {
            n: GrownList(self, _items_before(v, read=lists[n].reads), v.count, v.span) for n, v in grown.items()
        }
        self.filled |= {n: FilledTensor(self, as_tensor_or_number(v, "a list")) for n, v in filled.items()}
        filled |= grown
        names = [n for n in names if n not in filled]
        before = {name: self.scope.names[name] for name in names if name in self.scope.names}
        if any(n not in before and self._has_other_meaning(n) for n in names):
            raise NotRolledError
        self.changed = _changed_names(self.node.body) & {n for n, v in before.items() if _is_changeable(v)}
        if isinstance(self.node, tree.While) and any(
            isinstance(v, MutableReference) for n, v in before.items() if n not in self.changed
        ):
            # Without a round they are still what other names refer to.
            raise NotRolledError
        _require_distinct([*filled.values(), *(before[n] for n in self.changed)])
        given = {name: self._as_number(name, value) for name, value in before.items()}
        places = {name: self.place(value) for name, value in given.items()}
        kept = [n for n in names if n in before or self._is_read_later(n)]
        if isinstance(self.node, tree.While) and len(kept) > len(before):
            # Without a round they have no value.
            raise NotRolledError
        results = self._results(before, given, places, kept)
        for name, tensor in self.filled.items():
            tensor.complete(filled[name], results[_row_key(name)])
        for name in names:
            if name in self.changed:
                replace_elements(before[name], results[name])
                self.scope.names[name] = before[name]
            elif name in results:
                self.scope.names[name] = self.machine.kept(results[name])
            else:
                self.scope.names.pop(name, None)
        if not self.leaves:
            last = len(self.counters) - 1
            for name, along in self.targets.items():
                self.scope.names[name] = float(along[last]) if isinstance(along, range) else index(along, last)
        return results.get(_VALUE)

    def _has_other_meaning(self, name: str) -> bool:
        """Return whether a name that is not assigned yet is read as that of a value around, as only the first round
        reads it."""
        return name in scope_of_program.CONSTANTS or self.machine.find(name, self.scope) is not None

    def _results(
        self, before: dict[str, Value], given: dict[str, Value], places: dict[str, Traced], kept: Sequence[str]
    ) -> dict[str, Value]:
        """The values of names after all rounds, and that of the last statement; `given` are those of `before` as
        numbers and tensors."""
        around = {n: v for n, v in self.scope.names.items() if n not in before}
        guard, active = self.trace.input(1.0, constant=True), self.trace.input(1.0, constant=True)
        examples: dict[str, Value] = {}
        order = [*kept, *([_VALUE] if self.has_value else [])]

        def one_round() -> list[Value]:
            self.scope.names.clear()
            self.scope.names.update(around)
            own = {n: self._within_round(before.get(n), place) for n, place in places.items()}
            self.scope.names.update(own)
            self.scope.names.update({n: tensor.begin() for n, tensor in self.filled.items()})
            if self.leaves and not self.trace.decided(greater(active, 0.5)):
                return [*(self._unchanged(n, places, examples) for n in order), active, guard]
            if isinstance(self.node, tree.While) and not self._test(self.node.test):
                return [*(self._unchanged(n, places, examples) for n in order), 0.0, guards_held(self.trace, guard)]
            value = self._body()
            found = {n: self.scope.names[n] for n in kept if n in self.scope.names}
            if len(found) < len(kept) or any(found[n] is not own[n] for n in self.changed):
                raise NotRolledError
            self._require_no_aliases(found, own)
            for tensor in self.filled.values():
                tensor.end()
            if self.has_value:
                found[_VALUE] = value
            found = {n: self._as_number(n, v) for n, v in found.items()}
            examples.update(found)
            goes_on = 1.0 if self.machine.leaving is None or self.machine.leaving.by is tree.Continue else 0.0
            self.machine.leaving = None
            results = [found[n] for n in order]
            if not all(map(is_number, results)):
                raise NotRolledError
            return [*results, *([goes_on] if self.leaves else []), guards_held(self.trace, guard)]

        hidden = [*(before[n] for n in self.changed), *(around[n] for n in self.filled)]
        for value in hidden:
            _hide(value, hidden=True)
        try:
            paths = self.paths(one_round)
        finally:
            for value in hidden:
                _hide(value, hidden=False)
        for name in order:
            self._unchanged(name, places, examples)
        carried = [Carried(given[n] if n in given else zeros(places[n]), places[n].variable) for n in order]
        for name, tensor in self.filled.items():
            passed_on, outputs = tensor.carried(paths)
            order += [_row_key(name, 1 + k) for k in range(len(passed_on))]
            carried += passed_on
            paths = [p._replace(outputs=(*p.outputs[:-1], *own, p.outputs[-1])) for p, own in zip(paths, outputs)]
        self.scope.names.clear()
        self.scope.names.update({**around, **before})
        if self.leaves:
            carried.append(Carried(1.0, active.variable))
        carried.append(Carried(1.0, guard.variable))
        always = {_VALUE, *self.changed, *map(_row_key, self.filled)}
        wanted = {i for i, n in enumerate(order) if n in always or self._is_read_later(n)}
        needed = needed_places(carried, paths, wanted | {*range(len(order), len(carried))})
        names = [order[i] for i in needed if i < len(order)]
        paths = [path._replace(outputs=tuple(path.outputs[i] for i in needed)) for path in paths]
        rounds = Rounds(self.counter.variable, self.counters, len(names) if self.leaves else None)
        return dict(zip(names, self.rolled(rounds, [carried[i] for i in needed], paths)))

    def row_at(self, sequence: Value, key: Sequence[Any]) -> Value | None:
        if isinstance(sequence, FilledReference):
            return sequence.part(key)
        return sequence.grown.item_at(key) if isinstance(sequence, GrowingItems) else super().row_at(sequence, key)

    def owns(self, value: Value) -> bool:
        return isinstance(value, FilledReference) or super().owns(value)

    def _require_no_aliases(self, found: Mapping[str, Value], own: Mapping[str, Value]) -> None:
        """Raise NotRolledError if a name that is assigned anew may refer to the same tensor as another one."""
        made = [v for n, v in found.items() if n not in self.changed and isinstance(v, MutableReference)]
        others = [*map(id, own.values()), *map(id, made)]
        if any(type(v) is not MutableReference or not self.owns(v) or others.count(id(v)) > 1 for v in made):
            raise NotRolledError

    def _as_number(self, name: str, value: Value) -> Value:
        """A value that rounds pass on as a number or tensor, from which `_within_round` makes it again."""
        if type(value) is ProgramList and name in self.changed and value.count:
            return as_tensor_or_number(value, "a list")
        return value.value if isinstance(value, MutableReference) else value

    def _within_round(self, before: Value, place: Traced) -> Value:
        """The traced value of a name at the beginning of a round, for its value before the loop."""
        if isinstance(before, ProgramList):
            made = ProgramList([index(place, i) for i in range(place.shape[0])], before.span, before.made)
            self.owned.append(made)
            return made
        return MutableReference(place) if isinstance(before, MutableReference) else place

    def _is_read_later(self, name: str) -> bool:
        return _is_read_later(self.machine.program, self.node, name)

    def _body(self) -> Value:
        for name, along in self.targets.items():
            self.scope.names[name] = self.item(along)
        return self.machine.drive(block(self.machine, self.node.body), self.node, self.scope)

    def _test(self, test: tree.Expression) -> bool:
        def task() -> Task:
            return as_bool((yield test), test)

        holds: bool = self.machine.drive(task(), test, self.scope)
        return holds

    def _unchanged(self, name: str, places: dict[str, Traced], examples: dict[str, Value]) -> Value:
        """The value that a round passes on without being run."""
        if name not in places:
            places[name] = self.trace.input(example_of(examples[name]))
        return places[name]


def _targets(node: Loop, values: Value) -> dict[str, Value]:
    """The names that a `for` assigns in each round, with the range or tensor that each goes along.

    Raises NotRolledError for other targets.
    """
    if isinstance(node, tree.While):
        return {}
    targets = node.target.targets if isinstance(node.target, tree.TargetList) else (node.target,)
    along = values.beside if isinstance(values, ProgramList) else (values,)
    names = [t.name for t in targets if isinstance(t, tree.BoundName)]
    if not len(targets) == len(along) == len({*names}):
        raise NotRolledError
    return dict(zip(names, along))


def _nodes_below(body: Iterable[tree.SyntaxNode]) -> Iterator[tree.SyntaxNode]:
    for statement in body:
        yield from tree.walk(statement)


class _Appending(NamedTuple):
    """A call that appends an item to a list in each round, and whether rounds also read items of the list."""

    call: tree.SyntaxNode
    reads: bool


def _appended_lists(body: Sequence[tree.Statement]) -> dict[str, _Appending]:
    """The lists to which each round appends an item, and of which it reads at most single items, by name."""
    calls: dict[str, tree.SyntaxNode] = {}
    for statement in body:
        call = statement.value if isinstance(statement, tree.Evaluate) else None
        if isinstance(call, tree.Call) and call.name == "append" and isinstance(call.receiver, tree.Name):
            calls[call.receiver.id] = call
    nodes = [*_nodes_below(body)]
    mentioned = Counter(n.id for n in nodes if isinstance(n, tree.Name))
    read = Counter(n.value.id for n in nodes if isinstance(n, tree.Index) and isinstance(n.value, tree.Name))
    changed = _changed_names(body)
    return {
        name: _Appending(call, read[name] > 0)
        for name, call in calls.items()
        if mentioned[name] == 1 + read[name] and name not in changed
    }


def _items_before(value: ProgramList, *, read: bool) -> Value:
    """The items of a list as a tensor; None if there are none, or they are not read."""
    return as_tensor_or_number(value, "a list") if read and value.count else None


def _assigned_names(body: Sequence[tree.Statement], lists: Mapping[str, _Appending]) -> list[str] | None:
    """The names that are assigned in the body of a loop, besides `lists` that it appends to; None for a body that
    cannot be rolled."""
    found: dict[str, None] = {}
    appending = {appending.call for appending in lists.values()}
    for node in _nodes_below(body):
        if node in appending:
            continue
        if isinstance(node, (tree.Return, tree.Define, tree.While, tree.Import)):
            return None
        if changes_list(node):
            return None
        for target in _changed_targets(node):
            if not isinstance(target, tree.Name):
                return None
            found[target.id] = None
        if isinstance(node, tree.BoundName):
            found[node.name] = None
    return [*found]


def _filled_names(body: Sequence[tree.Statement], targets: Mapping[str, Value]) -> set[str]:
    """The names of what is only assigned to at places that depend on the `targets` of the loop."""
    found, others = set[str](), set[str]()
    for node in _nodes_below(body):
        for place in _changed_places(node):
            target = place.value if isinstance(place, tree.Index) else place
            if isinstance(target, tree.Name):
                moves = any(isinstance(n, tree.Name) and n.id in targets for n in tree.walk(place))
                (found if moves else others).add(target.id)
    return found - others


def _row_key(name: str, rounds: int = 1) -> str:
    return f"{_ROW}{name} {rounds}"


def _changed_targets(node: tree.SyntaxNode) -> Iterator[tree.SyntaxNode]:
    """The names whose elements a statement assigns, or that it changes in place."""
    for place in _changed_places(node):
        yield place.value if isinstance(place, tree.Index) else place


def _changed_places(node: tree.SyntaxNode) -> Iterator[tree.SyntaxNode]:
    """The elements that a statement assigns to, and what it changes in place."""
    if isinstance(node, tree.Augment):
        yield node.target
    elif isinstance(node, tree.Assign):
        yield from (n for n in _nodes_below(node.targets) if isinstance(n, tree.Index))


def _changed_names(body: Sequence[tree.Statement]) -> set[str]:
    targets = (t for node in _nodes_below(body) for t in _changed_targets(node))
    return {t.id for t in targets if isinstance(t, tree.Name)}


def _require_distinct(values: Sequence[Value]) -> None:
    """Raise NotRolledError if two names that a round changes refer to the same list or tensor."""
    if len({*map(id, values)}) < len(values):
        raise NotRolledError


def _is_changeable(value: Value) -> bool:
    """Return whether rounds may pass on a value that they change: a tensor, or a list of what cannot be changed
    itself."""
    if type(value) is ProgramList:
        return value.is_vector or not any(isinstance(i, (ProgramList, MutableReference)) for i in value.items)
    return type(value) is MutableReference


def _hide(value: Value, *, hidden: bool) -> None:
    """Refuse reading a list or a tensor that rounds change, or allow it again."""
    if isinstance(value, ProgramList):
        value.is_hidden = hidden
    else:
        value.__class__ = HiddenReference if hidden else MutableReference


def _is_read_later(program: tree.Module, loop: Loop, name: str) -> bool:
    """Return whether a name may be read after the loop, or before it is assigned where the loop is run again."""
    within = _nodes_within(loop)
    if any(n not in within for n in _readers(program).get(name, ())):
        return True
    return loop in _inner_loops(program) and not _is_assigned_first(loop.body, name)


@functools.lru_cache(maxsize=32)
def _nodes_within(loop: Loop) -> frozenset[tree.SyntaxNode]:
    return frozenset(tree.walk(loop))


def _is_assigned_first(body: Sequence[tree.Statement], name: str) -> bool:
    """Return whether the first statement that mentions a name assigns it and does not read it."""
    for statement in body:
        mentioned = [n for n in tree.walk(statement) if name in (getattr(n, "id", None), getattr(n, "name", None))]
        if mentioned:
            return isinstance(statement, tree.Assign) and all(isinstance(n, tree.BoundName) for n in mentioned)
    return False


@functools.lru_cache(maxsize=32)
def _inner_loops(program: tree.Module) -> frozenset[tree.SyntaxNode]:
    """The loops that stand in other loops."""
    loops = [n for n in tree.all_nodes(program) if isinstance(n, (tree.For, tree.While))]
    return frozenset(n for o in loops for n in tree.walk(o) if n is not o and isinstance(n, (tree.For, tree.While)))


@functools.lru_cache(maxsize=32)
def _readers(program: tree.Module) -> dict[str, list[tree.SyntaxNode]]:
    """The nodes that read each name."""
    found: dict[str, list[tree.SyntaxNode]] = {}
    for node in tree.all_nodes(program):
        if isinstance(node, (tree.Name, tree.Call)):
            found.setdefault(node.id if isinstance(node, tree.Name) else node.name, []).append(node)
    return found


@functools.lru_cache(maxsize=32)
def _last_statements(program: tree.Module) -> frozenset[tree.SyntaxNode]:
    """The last statements of all blocks of a program, whose value may be used."""
    blocks: list[Sequence[tree.SyntaxNode]] = [program.body]
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Block):
            blocks.append(node.statements)
        elif isinstance(node, (tree.For, tree.While)):
            blocks.append(node.body)
        elif isinstance(node, tree.If):
            blocks += [node.body, node.orelse]
    return frozenset(statements[-1] for statements in blocks if statements)


@functools.lru_cache(maxsize=128)
def _functions_change_lists(program: tree.Module, loop: Loop) -> bool:
    """Return whether a function that a loop may call changes a list."""
    lambdas = [n for n in tree.walk(loop) if isinstance(n, tree.Lambda)]
    return any(map(changes_list, _nodes_below([*lambdas, *scope_of_program.reached_functions(program, loop)])))
