"""The names of a session: the inputs that have values, and the definitions that were made of them.

A session is one program that grows. An input is a name with a value that was made of numbers alone; gradients are by
inputs. A definition is a statement that reads others, kept as text. What is evaluated is preceded by the definitions
that it needs, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from types import SimpleNamespace

from gradcli import arrays, limits
from gradcli.cli.arguments import inputs
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell.typed_text import LAST
from gradcli.errors import DifferentiationError, GradcliError, ProgramSyntaxError, Span, UsageError
from gradcli.evaluation import session
from gradcli.evaluation.constant_expressions import constant
from gradcli.io import variables
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import binders, scope
from gradcli.language.names.evaluator_functions import LIST_METHODS
from gradcli.language.names.resolution import resolve
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import parse, statement_spans, tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.type_hints import Any

# The dtype of a session's numbers.
_DTYPE = "float64"
# The most elements of an array that a command gets as NAME=VALUE: of 25 characters each, half of the longest program.
_MOST_ELEMENTS = 20_000
# The libraries whose prefixes decide what a name without a prefix means, and what `import` line says so.
_LIBRARIES = {"torch": "torch", "numpy": "numpy", "jax": "jax", "scipy.linalg": "numpy", "sympy": "sympy"}

_ASSIGNED = re.compile(r"\s*([^\W\d]\w*)\s*(?::[^=\n]*)?=(?!=)\s*(.*?)\s*$", re.DOTALL)
_FROM_FILE = re.compile(r"\s*[^\W\d]\w*\s*=\s*@")


class SessionInput:
    """A name with a value; `text` is how the value is written after `NAME=`, None where it was computed."""

    def __init__(self, name: str, value: Any, text: str | None) -> None:
        self.name, self.value, self.text = name, value, text


class Definition:
    """A statement that others may need. `needs` are the inputs and definitions that it was computed from, None for one
    that reads names when it is used, as a function does; `values` are the tensors that it gave to names."""

    def __init__(
        self, number: int, text: str, reads: frozenset[str], needs: frozenset[Entry] | None, values: Mapping[str, Any]
    ) -> None:
        self.number, self.text, self.reads, self.needs, self.values = number, text, reads, needs, values


Entry = SessionInput | Definition


class Assembled(NamedTuple):
    """A text with the definitions that it needs in front: `parts` are these, with their places, and `lead` is their
    length."""

    source: str
    lead: int
    parts: Sequence[tuple[int, str]]
    inputs: Sequence[SessionInput]


class TypedStatement(NamedTuple):
    """A statement as it was typed, its tree, and the names that it reads and writes."""

    text: str
    node: tree.Statement
    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def is_expression(self) -> bool:
        return not self.writes and isinstance(self.node, (tree.Evaluate, tree.If, tree.For, tree.While))

    @property
    def is_comment(self) -> bool:
        """True if it is a text alone, as programs have them at their beginning, or `pass`."""
        text = isinstance(self.node, tree.Evaluate) and isinstance(self.node.value, tree.String)
        return text or isinstance(self.node, tree.Pass)


class Answer(NamedTuple):
    """The result of an expression, and the program that gave it."""

    result: session.Result
    assembled: Assembled
    inputs: Collection[str]


def reads_file(text: str) -> bool:
    """Return whether a text is `NAME = @PATH`."""
    return _FROM_FILE.match(text) is not None


def names_read(text: str, otherwise: Collection[str]) -> Collection[str]:
    """The names that a program reads or calls; `otherwise` for what is not a program, such as equations."""
    try:
        module = parse(text)
    except GradcliError:
        return otherwise
    return _reads(module)


def _reads(module: tree.Module) -> frozenset[str]:
    called = {n.name for n in tree.all_nodes(module) if isinstance(n, tree.Call)}
    return frozenset(scope.free_names(module)) | called


def statements(text: str) -> list[TypedStatement]:
    """The statements of a text. Raises ProgramSyntaxError."""
    try:
        parse(text)
    except ProgramSyntaxError:
        # A value with an uncertainty or a unit has a better hint.
        if (assigned := _ASSIGNED.match(text)) and assigned[2].strip():
            with limits.within():
                constant(assigned[2], _DTYPE, text, assigned.start(2))
        raise
    return [_statement(text[start:end]) for start, end in statement_spans(text)]


def _statement(text: str) -> TypedStatement:
    # The number keeps a final `def` from being called.
    module = parse(f"{text}\n0")
    node = module.body[0]
    return TypedStatement(text, node, _reads(module), frozenset(_names_written(node)))


def _names_written(node: tree.Statement) -> Iterator[str]:
    """The names that a statement gives a value, or changes."""
    waiting: list[tree.SyntaxNode] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.Define):
            yield part.name
            continue
        if isinstance(part, tree.Statement):
            yield from binders.bound_by(part)
            waiting += [child for child in tree.children(part) if isinstance(child, tree.Statement)]
        targets = part.targets if isinstance(part, tree.Assign) else ()
        if isinstance(part, tree.Augment):
            targets = (part.target,)
        for target in targets:
            yield from (base.id for n in tree.walk(target) if isinstance(n, tree.Index) and (base := _base(n)))
        if isinstance(part, tree.Evaluate) and _is_list_method(part.value):
            yield from (base.id for base in [_base(part.value.receiver)] if base is not None)  # type: ignore[attr-defined]


def _base(node: tree.SyntaxNode) -> tree.Name | None:
    """The name at the bottom of `name[i].attribute`."""
    while isinstance(node, (tree.Index, tree.Attribute)):
        node = node.value
    return node if isinstance(node, tree.Name) else None


class Workspace:
    """The names of a session. `notify` is called with notes for the user, `check_hint` with an error and the words of
    the command line `gradcli eval` that would raise it."""

    def __init__(
        self,
        environment: Environment,
        notify: Callable[[str], None],
        check_hint: Callable[[GradcliError, Sequence[str]], None],
    ) -> None:
        self._environment = environment
        self._notify = notify
        self._check_hint = check_hint
        self._numbers = count()
        self.entries: dict[str, Entry] = {}
        # The `import` statements of the session, and those that its prefixes stand for.
        self._imports: dict[str, None] = {}

    def run(self, statement: TypedStatement) -> Answer | None:
        """Run a statement; the answer of an expression. Raises what evaluation raises, and then nothing has changed."""
        if statement.is_comment:
            return None
        if statement.is_expression:
            return self._answer(statement)
        if isinstance(statement.node, tree.Import):
            self._note_libraries(statement.node.libraries.split())
            self._imports[statement.text] = None
        elif isinstance(statement.node, tree.Define):
            self._set({statement.node.name: self._definition(statement, None, {})})
        else:
            self._assign(statement)
        return None

    def read_file(self, text: str) -> None:
        """Run `NAME = @PATH`."""
        name, reference, _ = variables.split_binding(text)
        if reference.startswith("@-"):
            raise UsageError("standard input is where statements are typed", hint=f"write {name} = @PATH")
        options: Any = SimpleNamespace(max_elements=limits.MAX_ELEMENTS, vars=None, file=None, words=[text])
        with _computing():
            value = inputs.bindings_of([text], _DTYPE, options, self._environment)[name]()
        self._set({name: SessionInput(name, value, reference.strip())})

    def forget(self, names: Collection[str]) -> None:
        """Remove names; without any, everything. Raises UsageError for one that does not exist."""
        for name in names:
            if name not in self.entries:
                raise UsageError(f"there is no name '{name}'", hint=":vars shows the names of the session")
        for name in names:
            self._keep_values_of_what_depends_on(name, names)
            del self.entries[name]
        if not names:
            self.entries.clear()
            self._imports.clear()

    def assembled(self, text: str, reads: Iterable[str]) -> Assembled:
        """A text that reads names, with the definitions that it needs in front."""
        needed = self._needed(reads)
        definitions = sorted((e for e in needed if isinstance(e, Definition)), key=lambda each: each.number)
        lead, parts = 0, []
        for part in (*self._imports, *(definition.text for definition in definitions)):
            parts.append((lead, part))
            lead += len(part) + 1
        source = "".join(f"{part}\n" for _, part in parts) + text
        # In the order of the session, which is that of a table of gradients.
        found = {e.name: e for e in self.entries.values() if isinstance(e, SessionInput) and e in needed}
        return Assembled(source, lead, parts, [*found.values()])

    def _needed(self, reads: Iterable[str]) -> frozenset[Entry]:
        """The entries of names, and all that these need."""
        found: set[Entry] = set()
        waiting = [self.entries[name] for name in reads if name in self.entries]
        while waiting:
            entry = waiting.pop()
            if entry in found:
                continue
            found.add(entry)
            if isinstance(entry, Definition):
                late = [self.entries[name] for name in entry.reads if name in self.entries]
                waiting += late if entry.needs is None else [*entry.needs]
        return frozenset(found)

    def _answer(self, statement: TypedStatement) -> Answer:
        assembled = self.assembled(statement.text, statement.reads)
        with _computing(), self._relocating(assembled):
            module = parse_charged(assembled.source)
            bound = _bindings(module, assembled.inputs)
            result = _evaluated(session.EvaluationRequest(module, bound, wrt=tuple(bound)))
        self._note_prefixes(module)
        needs = self._needed(statement.reads)
        if isinstance(statement.node, tree.Evaluate) and _has_inputs(needs):
            last = statement._replace(text=f"{LAST} = {statement.text}")
            self._set({LAST: self._definition(last, needs, {LAST: result.value})})
        else:
            self._set({LAST: SessionInput(LAST, result.value, None)})
        changing = self._with_changed_in_place(statement)
        if changing.writes:
            self._assign(changing)
        return Answer(result, assembled, bound)

    def _assign(self, statement: TypedStatement) -> None:
        self._as_lists(statement)
        statement = self._with_changed_in_place(statement)
        if isinstance(statement.node, (tree.If, tree.For, tree.While)):
            # With other inputs the statement may leave a name as it is.
            kept = {name for name in statement.writes if isinstance(self.entries.get(name), Definition)}
            statement = statement._replace(reads=statement.reads | kept)
        needs = self._needed(statement.reads)
        if not needs and (given := _constant(statement)) is not None:
            self._set({given.name: given})
            return
        values = self._values(statement)
        changed = {entry.name for entry in needs if isinstance(entry, SessionInput)} & statement.writes
        if not values:
            made = self._definition(statement, None, {})
            self._set(dict.fromkeys(sorted(statement.writes), made))
        elif changed or not (_has_inputs(needs) or self._is_list_elsewhere(statement, needs)):
            # A name that changes, as in x = x + 1, is another input from here on.
            others = [entry.name for entry in needs if isinstance(entry, SessionInput) and entry.name not in changed]
            if others:
                self._notify(f"note: {_quoted(values)} no longer depends on {_quoted(others)}, as an input has changed")
            self._set({name: SessionInput(name, value, None) for name, value in values.items()})
        else:
            self._set(dict.fromkeys(values, self._definition(statement, needs, values)))

    def _values(self, statement: TypedStatement) -> dict[str, Any]:
        """The tensors that a statement gives to names; none where it makes functions or texts, or begins a list."""
        if _begins_a_list(statement.node):
            return {}
        assembled = self.assembled(statement.text, statement.reads)
        with _computing(), self._relocating(assembled):
            found = self._tensors(assembled, statement.writes)
        if any(self._is_without_value(name) for name in statement.writes - found.keys()):
            return {}
        return found

    def _tensors(self, assembled: Assembled, names: Iterable[str]) -> dict[str, Any]:
        """The values of names after a program has run, with lists as tensors."""
        module = parse_charged(f"{assembled.source}\n0")
        bound = _bindings(module, assembled.inputs)
        found: dict[str, Any] = dict(evaluate(module, bound).names)
        self._note_prefixes(module)
        missing = [name for name in names if name not in found]
        bound = {each.name: arrays.in_default_namespace(each.value) for each in assembled.inputs} | bound
        for name in missing:
            with suppress(GradcliError):
                found[name] = evaluate(parse_charged(f"{assembled.source}\n{name}"), bound).value
        return {name: arrays.on_host(concrete(found[name])) for name in sorted(names) if name in found}

    def _with_changed_in_place(self, statement: TypedStatement) -> TypedStatement:
        """A statement that also writes the names whose tensors it changes in place, under another name or in a
        function."""
        needs = self._needed(statement.reads)
        if not _may_change_in_place(statement, needs):
            return statement
        related = {
            name
            for name, entry in self.entries.items()
            if name != LAST and name not in statement.writes and needs & self._needed([name])
        }
        reads = statement.reads | related
        before, after = self.assembled("", reads), self.assembled(statement.text, reads)
        with _computing(), self._relocating(after):
            old, new = self._tensors(before, related), self._tensors(after, related)
        changed = {name for name in new if name not in old or not _are_equal(old[name], new[name])}
        return statement._replace(reads=statement.reads | changed, writes=statement.writes | changed)

    def _is_list_elsewhere(self, statement: TypedStatement, needs: frozenset[Entry]) -> bool:
        """Return whether a statement needs a list that other names stand for, so that these may be the same list."""
        lists = frozenset(entry for entry in needs if isinstance(entry, Definition) and _is_list(entry))
        others = (name for name in self.entries if name not in statement.writes) if lists else ()
        return any(lists & self._needed([name]) for name in others)

    def _is_without_value(self, name: str) -> bool:
        """Return whether a name stands for a function, a text, or a list that is not a tensor."""
        entry = self.entries.get(name)
        return isinstance(entry, Definition) and not entry.values

    def _as_lists(self, statement: TypedStatement) -> None:
        """Make lists again of inputs that a statement appends to: the values of inputs are tensors."""
        for node in tree.walk(statement.node):
            receiver = node.receiver if isinstance(node, tree.Call) and node.name in LIST_METHODS else None
            entry = self.entries.get(receiver.id) if isinstance(receiver, tree.Name) else None
            if isinstance(entry, SessionInput) and arrays.shape(entry.value):
                text = f"{entry.name} = {entry.text or _written(entry, skip_large=False)}"
                self.entries[entry.name] = Definition(next(self._numbers), text, frozenset(), None, {})

    def _definition(
        self, statement: TypedStatement, needs: frozenset[Entry] | None, values: Mapping[str, Any]
    ) -> Definition:
        return Definition(next(self._numbers), statement.text, statement.reads, needs, values)

    def _set(self, entries: Mapping[str, Entry]) -> None:
        """Give names new meanings. What was computed from an input that has another value now, or from a definition
        that is an input now, keeps its own value."""
        for name, new in entries.items():
            old = self.entries.get(name)
            if isinstance(old, SessionInput) or isinstance(new, SessionInput):
                self._keep_values_of_what_depends_on(name, entries)
        for name in entries:
            self.entries.pop(name, None)
        self.entries |= entries

    def _keep_values_of_what_depends_on(self, name: str, replaced: Collection[str]) -> None:
        """Make inputs of the values that were computed from a name, but of those that are replaced themselves."""
        changed = self.entries.get(name)
        kept = []
        for other, entry in self.entries.items():
            # One statement may have given values to several names.
            if other in replaced or not isinstance(entry, Definition) or other not in entry.values:
                continue
            if entry is not changed and changed not in (entry.needs or ()):
                continue
            kept.append(other)
            self.entries[other] = SessionInput(other, entry.values[other], None)
        told = [other for other in kept if other != LAST]
        if told:
            kept_value = "keeps its value" if len(told) == 1 else "keep their values"
            self._notify(f"note: {_quoted(told)} {kept_value}, computed from the former '{name}'")

    @contextmanager
    def _relocating(self, assembled: Assembled) -> Iterator[None]:
        """Within the block, errors that point into the assembled source are made to point into what was typed."""
        try:
            yield
        except GradcliError as error:
            self._check_hint(error, [assembled.source, *values_as_words(assembled.inputs, skip_large=True)])
            if error.source is not None and error.source.startswith(assembled.source) and error.span is not None:
                error.source, error.span = place_in(assembled, error.span)
            raise

    def _note_prefixes(self, module: tree.Module) -> None:
        nodes = tree.all_nodes(module)
        modules = dict.fromkeys(n.module for n in nodes if isinstance(n, (tree.Call, tree.Name)) and n.module)
        tops = [next((top for top in _LIBRARIES if f"{m}.".startswith(f"{top}.")), "") for m in modules]
        self._note_libraries([_LIBRARIES[top] for top in tops if top])

    def _note_libraries(self, libraries: Iterable[str]) -> None:
        """Keep that the session uses a library, which decides what names without a prefix mean."""
        for library in libraries:
            line = f"import {library}"
            if library in _LIBRARIES.values() and line not in self._imports:
                self._imports[line] = None
                if library == "torch":
                    self._notify("note: from here on, names without a prefix have the meaning that PyTorch gives them")


@contextmanager
def _computing() -> Iterator[None]:
    """Within the block, compute as `gradcli eval` does by default."""
    with arrays.using_namespace(None), limits.within(), arrays.using_dtype(_DTYPE):
        yield


def _evaluated(request: session.EvaluationRequest) -> session.Result:
    """The value with its gradient; without the gradient if the value is not a scalar."""
    try:
        return session.run(request)
    except DifferentiationError:
        result = session.run(request._replace(gradient=False))
        if not arrays.shape(result.value):
            raise
        return result


def _bindings(module: tree.Module, given: Iterable[SessionInput]) -> dict[str, Any]:
    """The values of the inputs that a program reads; those that it uses as masks keep truth values."""
    reads = scope.free_names(module)
    masks = resolve(module).masks
    return {
        each.name: arrays.in_default_namespace(
            each.value if each.name in masks else arrays.in_precision(each.value, _DTYPE)
        )
        for each in given
        if each.name in reads
    }


def _constant(statement: TypedStatement) -> SessionInput | None:
    """The input that a statement `NAME = EXPRESSION` makes, where the expression is made of numbers alone."""
    assigned = _ASSIGNED.match(statement.text)
    if assigned is None or statement.writes != {assigned[1]} or _begins_a_list(statement.node):
        return None
    try:
        with _computing():
            found = constant(assigned[2], _DTYPE, statement.text, assigned.start(2), truths=True)
    except GradcliError:
        # A function or a text; an error is raised again where the statement is run.
        return None
    return SessionInput(assigned[1], found, assigned[2] if "\n" not in assigned[2] else None)


def _begins_a_list(node: tree.Statement) -> bool:
    """Return whether a statement assigns an empty list, which is there to be appended to."""
    return isinstance(node, tree.Assign) and isinstance(node.value, tree.List) and not node.value.items


def _may_change_in_place(statement: TypedStatement, needs: Collection[Entry]) -> bool:
    """Return whether a statement, or a function that it may call, may change tensors or lists that have other names."""
    definitions = [entry for entry in needs if isinstance(entry, Definition)]
    late = [entry.text for entry in definitions if not entry.values]
    lists = [*filter(_is_list, definitions)]
    values = [
        v for entry in needs for v in ([entry.value] if isinstance(entry, SessionInput) else entry.values.values())
    ]
    if not lists and not any(arrays.shape(value) for value in values):
        return False
    modules = [parse(f"{text}\n0") for text in (statement.text, *late)]
    return any(resolve(m).changes_in_place or any(map(_is_list_method, tree.all_nodes(m))) for m in modules)


def _is_list(entry: Definition) -> bool:
    """Return whether a definition begins a list that is not a tensor yet."""
    assigned = _ASSIGNED.match(entry.text)
    return not entry.values and assigned is not None and assigned[2].startswith("[")


def _is_list_method(node: tree.SyntaxNode) -> bool:
    return isinstance(node, tree.Call) and node.receiver is not None and node.name in LIST_METHODS - {"copy"}


def _are_equal(one: Any, other: Any) -> bool:
    import numpy as np

    return arrays.shape(one) == arrays.shape(other) and bool(np.array_equal(one, other, equal_nan=True))


def _has_inputs(needs: Iterable[Entry]) -> bool:
    return any(isinstance(entry, SessionInput) for entry in needs)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def values_as_words(given: Iterable[SessionInput], *, skip_large: bool = False) -> list[str]:
    """The values of inputs as words NAME=VALUE. Raises UsageError for an array that is too large for it, unless those
    are to be left out."""
    return [f"{each.name}={text}" for each in given if (text := each.text or _written(each, skip_large))]


def _written(given: SessionInput, skip_large: bool) -> str | None:
    """The value of an input as an expression, which gives the same numbers."""
    elements = arrays.size(given.value)
    if elements <= _MOST_ELEMENTS:
        return str(arrays.tolist(given.value))
    if skip_large:
        return None
    raise UsageError(
        f"'{given.name}' has {elements:,} elements, too many to hand to a command",
        hint=f"read it from a file: {given.name} = @PATH.npy",
    )


def place_in(assembled: Assembled, span: Span) -> tuple[str, Span]:
    """The typed statement that a span of the assembled source lies in, and the span in it."""
    start, text = assembled.lead, assembled.source[assembled.lead :]
    if span.start < assembled.lead:
        start, text = next(part for part in reversed(assembled.parts) if part[0] <= span.start)
    return text, Span(span.start - start, max(span.end, span.start) - start)
