"""Questions about the names of a program: which ones it reads, assigns, calls and never defines.

What its tree alone says of them is found once, see `gradcli.language.names.resolution`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from gradcli.errors import (
    BindingError,
    CallError,
    ProgramSyntaxError,
    Proposal,
    Span,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from gradcli.language.names import binders
from gradcli.language.names.evaluator_functions import (
    DERIVATIVES,
    DETACH,
    FUNCTIONALS,
    LIST_METHODS,
    PYTHON_FUNCTIONS,
    TRANSFORMS,
)
from gradcli.language.names.resolution import COMPLEX_DTYPES, resolve
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.distribution_names import METHODS, is_distribution, may_be_distribution
from gradcli.type_hints import Any

# Python's number types, and the dtypes that they stand for in arguments.
TYPES = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}
CONSTANTS: dict[str, Any] = {"pi": math.pi, "π": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, **TYPES}
# Constants with a library prefix, as in `np.pi`.
LIBRARY_CONSTANTS: dict[str, Any] = {**CONSTANTS, "tau": math.tau, "Inf": math.inf, "NaN": math.nan, "newaxis": None}


_DTYPES = ("float64", "float32", "double", "float", "int64", "int32", "long", "int", "bool", *COMPLEX_DTYPES)
LIBRARY_CONSTANTS |= {name: name for name in _DTYPES}


class Read(NamedTuple):
    """A name that is read at a place where it may not have been assigned by the program."""

    name: str
    span: Span
    # Whether it may have a value otherwise: assigned by some statement before this read, or as the imaginary unit.
    maybe_assigned: bool


class _Bind(NamedTuple):
    name: str
    certain: bool


class _ContextNode(NamedTuple):
    """A node or an assignment, whether it always runs, and the local names around it, which are not inputs."""

    node: tree.SyntaxNode | _Bind
    certain: bool
    bound: frozenset[str]


def free_names(program: tree.Module) -> dict[str, Read]:
    """The names whose values must come from outside, each with its first occurrence."""
    assigned: set[str] = set()
    # Names that an earlier statement may have assigned, in a branch or a loop.
    before: set[str] = set()
    found: dict[str, Read] = {}
    everywhere = resolve(program).assigned
    for event, certain in _events(program):
        if isinstance(event, _Bind):
            before.add(event.name)
            if event.certain:
                assigned.add(event.name)
        elif event.id not in assigned:
            maybe = event.id in (before if certain else everywhere)
            maybe |= isinstance(event, tree.ImaginaryUnit)
            maybe |= isinstance(event, tree.Input) and event.default is not None
            found.setdefault(event.id, Read(event.id, event.span, maybe))
    return found


def _events(program: tree.Module) -> Iterator[tuple[tree.Name | tree.Input | _Bind, bool]]:
    """Reads and assignments in the order of execution, each with whether it always happens."""
    functions = resolve(program).functions
    # Functions are visible everywhere and are kept in one set: a set for each part would take quadratic time.
    stack = [_ContextNode(s, True, frozenset()) for s in reversed(program.body)]
    while stack:
        part = stack.pop()
        if isinstance(part.node, _Bind):
            yield part.node, part.certain
        elif isinstance(part.node, tree.Expression):
            for node in _below(part.node):
                if isinstance(node, (tree.Lambda, tree.Comprehension)):
                    stack.extend(reversed([*_parts(_ContextNode(node, part.certain, part.bound))]))
                elif node.id not in part.bound and node.id not in functions:
                    yield node, part.certain
        else:
            stack.extend(reversed([*_parts(part)]))


def _below(expression: tree.Expression) -> Iterator[Any]:
    """The names in an expression, and its subexpressions that bind names of their own."""
    stack: list[tree.SyntaxNode] = [expression]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is tree.Name or kind is tree.ImaginaryUnit:
            if not node.module:  # type: ignore[attr-defined]
                yield node
        elif kind in _OWN_NAMES:
            yield node
        elif kind.below:
            stack += tree.children(node)[::-1]


_OWN_NAMES = (tree.Lambda, tree.Comprehension, tree.Input)


def _parts(part: _ContextNode) -> Iterator[_ContextNode]:
    """The children of a node in the order of execution."""
    node, certain, bound = part
    if isinstance(node, tree.Assign):
        yield _ContextNode(node.value, certain, bound)
        for target in node.targets:
            yield from _bindings(target, certain, bound)
    elif isinstance(node, tree.Augment):
        yield _ContextNode(node.target, certain, bound)
        yield _ContextNode(node.value, certain, bound)
        yield from _bindings(node.target, certain, bound)
    elif isinstance(node, (tree.Define, tree.Lambda)):
        yield from (_ContextNode(p.default, certain, bound) for p in node.parameters if p.default is not None)
        inner = bound | binders.local_names(node)
        yield from (_ContextNode(n, False, inner) for n in binders.body_of(node))
    elif isinstance(node, tree.For):
        yield _ContextNode(node.iterable, certain, bound)
        # The loop variable is bound in the body, but may be unbound after it, where no round runs.
        inner = bound | binders.bound_names(node.target)
        yield from (_ContextNode(s, False, inner) for s in node.body)
        yield from _bindings(node.target, False, bound)
    elif isinstance(node, tree.Comprehension):
        for clause in node.clauses:
            yield _ContextNode(clause.iterable, certain, bound)
            bound |= binders.bound_names(clause.target)
            yield from (_ContextNode(c, certain, bound) for c in clause.conditions)
        yield _ContextNode(node.element, certain, bound)
    elif isinstance(node, (tree.If, tree.While)):
        yield _ContextNode(node.test, certain, bound)
        yield from (_ContextNode(s, False, bound) for s in tree.children(node) if s is not node.test)
    else:
        yield from (_ContextNode(child, certain, bound) for child in tree.children(node))  # type: ignore[arg-type]


def _bindings(target: tree.SyntaxNode, certain: bool, bound: frozenset[str]) -> Iterator[_ContextNode]:
    if isinstance(target, tree.Index):
        yield _ContextNode(target, certain, bound)
    else:
        yield from (_ContextNode(_Bind(name, certain), certain, bound) for name in binders.bound_names(target))


def input_names(program: tree.Module, bound: Iterable[str]) -> frozenset[str]:
    """The input names, and the names that are assigned an input unchanged."""
    found = {*bound}
    for statement in program.body:
        if (
            isinstance(statement, tree.Assign)
            and isinstance(statement.value, tree.Name)
            and statement.value.id in found
        ):
            found |= binders.bound_by(statement)
    return frozenset(found)


def may_be_left(loop: tree.For | tree.While) -> bool:
    """Return whether the body of a loop has a statement that may end it early."""
    return any(isinstance(n, (tree.Break, tree.Return)) for s in loop.body for n in tree.walk(s))


# The input that formulas have in place of the imaginary unit: no name of the language, so that nothing else is called so.
IMAGINARY_UNIT = "1j"


def reached_functions(program: tree.Module, node: tree.SyntaxNode) -> list[tree.Define]:
    """The functions of a program that are mentioned at a node or below it, or in one of these functions."""
    defined: dict[str, tree.Define] = {define.name: define for define in resolve(program).nodes(tree.Define)}
    found: list[tree.Define] = []
    waiting = [node]
    while waiting:
        names = mentioned_names(tree.walk(waiting.pop()))
        # Each function is taken once, so that recursion ends.
        new = [defined.pop(name) for name in names if name in defined]
        found += new
        waiting += new
    return found


def mentioned_names(nodes: Iterable[tree.SyntaxNode]) -> Iterator[str]:
    """The names that are read or called at these nodes."""
    for node in nodes:
        if isinstance(node, tree.Call):
            yield node.name
        elif isinstance(node, tree.Name):
            yield node.id


def check_names(program: tree.Module, bound: Collection[str]) -> None:
    """Raise UnknownNameError where the program calls a function that does not exist.

    `bound` are the input names. Names that are only read are looked up at run time, as a branch that is not taken may
    read one without a value.
    """
    resolution = resolve(program)
    if resolution.has_known_functions:
        return
    _check_leaving(program)
    for call, operation in resolution.operations.items():
        known = operation is not None or is_function(call.name, resolution.functions) or _is_method(call)
        is_value = not call.module and call.receiver is None and call.name in resolution.bound
        if not known and not is_value:
            raise _unknown_function(call, resolution.functions, bound, program.source)
    resolution.has_known_functions = True


def _check_leaving(program: tree.Module) -> None:
    """Raise ProgramSyntaxError for `return` outside a function, and for `break` or `continue` outside a loop."""
    if not resolve(program).nodes(tree.Return, tree.Break, tree.Continue):
        return
    stack: list[tuple[tree.SyntaxNode, bool, bool]] = [(s, False, False) for s in program.body]
    while stack:
        node, in_function, in_loop = stack.pop()
        if isinstance(node, tree.Return) and not in_function:
            raise ProgramSyntaxError(
                "'return' stands in a function alone",
                hint="the value of a program is that of its last statement",
                span=node.span,
                source=program.source,
            )
        if isinstance(node, (tree.Break, tree.Continue)) and not in_loop:
            word = "break" if isinstance(node, tree.Break) else "continue"
            raise ProgramSyntaxError(f"'{word}' stands in a loop alone", span=node.span, source=program.source)
        if isinstance(node, tree.Define):
            in_function, in_loop = True, False
        in_loop = in_loop or isinstance(node, (tree.For, tree.While))
        stack += [
            (child, in_function, in_loop)
            for child in tree.children(node)
            if isinstance(child, (tree.Statement, tree.Block))
        ]


def _is_method(call: tree.Call) -> bool:
    if call.module:
        return may_be_distribution(call.module) or is_distribution(f"{call.module}.{call.name}")
    return call.receiver is not None and (call.name in LIST_METHODS or call.name in METHODS or is_update(call))


def is_update(call: tree.Call) -> bool:
    """Return whether a call is a method of `x.at[i]`."""
    at = call.receiver.value if isinstance(call.receiver, tree.Index) else None
    return isinstance(at, tree.Attribute) and at.name == "at"


def is_function(name: str, functions: Collection[str]) -> bool:
    return (
        name in functions
        or name in DERIVATIVES
        or name in DETACH
        or name in PYTHON_FUNCTIONS
        or name in TRANSFORMS
        or name in FUNCTIONALS
        or table.find(name) is not None
        or table.differs(name)
    )


def unknown_name(name: str, known: Collection[str], source: str, span: Span) -> UnknownNameError:
    """The error for a name without a value at `span` in the source, where `known` are the names that may have one."""
    if name in known:
        return UnknownNameError(
            f"'{name}' has no value yet", hint="it is assigned later, or in a branch that was not taken"
        )
    # Imported here as only wrong programs need it.
    from gradcli.language.suggestions.joined_names import as_operand, split_into_factors
    from gradcli.language.suggestions.unknown_names import hint_for_name

    meant = hint_for_name(name, source, span)
    unbound = f"give it a value, as in {name}=1"
    hint: str | None
    if meant is not None:
        hint = meant
    elif table.find(name) is not None:
        hint = f"'{name}' is a function: call it, as in {name}(x), or give it a value, as in {name}=1"
    elif (product := split_into_factors(name, known)) is not None:
        product = as_operand(product, source, span)
        hint = Proposal(f"write {product}", product, otherwise=unbound)
    else:
        hint = did_you_mean(name, [*known, *(c for c in CONSTANTS if c not in TYPES)], unbound)
    return UnknownNameError(f"unknown name '{name}'", hint=hint)


def unread_name(name: str, reads: Collection[str], given: Collection[str], program: tree.Module) -> BindingError:
    """The error for a `given` name that the program does not read."""
    # Imported here as only wrong programs need it.
    from gradcli.language.suggestions.joined_names import unread_hint

    hint = unread_hint(name, [r for r in reads if r not in CONSTANTS], given, program)
    return BindingError(f"the program does not read '{name}'", hint=hint)


def check_read(given: Collection[str], program: tree.Module) -> None:
    """Raise BindingError for a `given` name that the program does not read."""
    reads = free_names(program)
    for name in given:
        if name not in reads:
            raise unread_name(name, reads, given, program)


def chosen_leaves(bound: Collection[str], wrt: Sequence[str] | None, const: Sequence[str]) -> tuple[str, ...]:
    """The names to differentiate by: those in `wrt` (None: all that are bound), without those in `const`.

    Raises BindingError for a name that has no value, and UsageError for one that is in both.
    """
    # A dict is fast to search.
    constant = dict.fromkeys(const)
    for option, names in (("--wrt", wrt or ()), ("--const", constant)):
        for name in names:
            if name not in bound:
                hint = did_you_mean(name, bound, f"give it a value, as in {name}=1")
                raise BindingError(f"{option} names '{name}', which has no value", hint=hint)
    both = next((name for name in wrt or () if name in constant), None)
    if both is not None:
        raise UsageError(f"'{both}' stands in both --wrt and --const", hint="leave it out of one of them")
    return tuple(name for name in (bound if wrt is None else wrt) if name not in constant)


def _unknown_function(
    call: tree.Call, functions: Collection[str], bound: Collection[str], source: str
) -> UnknownNameError | CallError:
    # Imported here as only wrong programs need it.
    from gradcli.language.suggestions.joined_names import as_operand, split_function_name
    from gradcli.language.suggestions.unknown_names import hint_for_function

    if call.receiver is None and call.name in bound:
        inner = source[call.name_span.end : call.span.end].strip()
        places = [argument.value for argument in call.arguments if isinstance(argument, tree.Number)]
        span = Span(call.name_span.start, call.span.end)
        product = as_operand(f"{call.name}*{inner}", source, span)
        hint: str = Proposal(f"write {product} for a product", product, span=span)
        if len(call.arguments) + len(call.keywords) != 1 or inner == "(end)":
            hint = ""
        if len(places) == len(call.arguments) and all(place >= 1 for place in places):
            # Matlab, R and Fortran count from 1.
            inner = f"({', '.join(f'{place - 1:g}' for place in places)})"
        # Matlab's `end` is the last element.
        element = f"{call.name}[{'-1' if inner == '(end)' else inner[1:-1].strip()}]"
        or_product = f", {product} for a product" if hint else ""
        indexed = f"write {element} for an element, the first of which has the index 0{or_product}"
        hint = Proposal(indexed, element, span=span, otherwise=hint or None)
        return CallError(f"'{call.name}' is a value, not a function", hint=hint, span=call.name_span, source=source)
    meant = hint_for_function(call.name, source, call.name_span)
    if meant is None and call.receiver is None and (run := split_function_name(call.name, bound)) is not None:
        product = as_operand(run + source[call.name_span.end : call.span.end], source, call.span)
        meant = Proposal(f"write {product}", product, span=call.span)
    # A single letter is a function of the user's, and no misspelling.
    known = [*functions, *table.names(), *DERIVATIVES, *DETACH] if len(call.name) > 1 else functions
    meant = meant or did_you_mean(call.name, known, "define it in the program, as in f(x) = x**2")
    return UnknownNameError(f"unknown function '{call.name}'", hint=meant, span=call.name_span, source=source)
