"""The pass after parsing: what a program alone says of its names and calls, found once and kept on its tree.

The passes after it read what stands here. None of them walks the tree for names, or looks up a name in the table of
functions again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.language.names import binders
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.operation import Operation
from gradcli.type_hints import Any
from gradcli.type_hints import Literal as OneOf

# Python's functions, see `gradcli.language.interpreter.builtin_calls.python_functions`.
PYTHON_FUNCTIONS = frozenset(
    {"range", "zip", "enumerate", "reversed", "list", "tuple", "len", "float", "int", "sorted", "double", "astype"}
)


# Whose meaning names without a prefix and methods have: that of PyTorch, of NumPy, of JAX (NumPy's meaning, but with
# immutable tensors), or "both" where it is ambiguous, as the program uses PyTorch and another library.
Dialect = OneOf["torch", "numpy", "jax", "both"]


class CallMeaning(NamedTuple):
    """The function of the table that a call runs, and whether its arguments fit the signature whatever they are."""

    operation: Operation
    fits: bool


CallMeanings = dict[tree.Call, CallMeaning]


class Resolution:
    """What a program says of its names without their values.

    `functions` are those that it defines, `parameters` the names of their parameters, `assigned` the names that its
    statements bind, and `mentioned` the names that it reads or calls. `operations` has for each call the function of the
    table that its name means, None where it means none. `roots` has the name of that function, or the operator, for
    each such call and each binary operation, in the order of the text; `used` has all of these.
    """

    def __init__(self, program: tree.Module) -> None:
        self._nodes: dict[type, list[Any]] = {}
        self.operations: dict[tree.Call, Operation | None] = {}
        self.roots: dict[tree.Expression, str] = {}
        for node in tree.all_nodes(program):
            self._nodes.setdefault(type(node), []).append(node)
            if isinstance(node, tree.Binary):
                self.roots[node] = node.operator
            elif isinstance(node, tree.Call):
                operation = self.operations[node] = called_operation(node)
                if operation is not None:
                    self.roots[node] = operation.name
        self.functions = frozenset([define.name for define in self.nodes(tree.Define)])
        self.parameters = frozenset([parameter.name for parameter in self.nodes(tree.Parameter)])
        self.assigned = frozenset[str]().union(*map(binders.bound_by, self.nodes(*_BINDING)))
        self.mentioned = frozenset(
            [call.name for call in self.operations] + [name.id for name in self.nodes(*_READING)]
        )
        self.used = frozenset(self.roots.values())
        # What the passes that follow found, whose errors belong to them: see `scope`, `dialects` and `call_meanings`.
        self.has_known_functions = False
        self.dialect: Dialect | None = None
        self.meanings: CallMeanings | None = None

    def nodes(self, *kinds: type) -> Sequence[Any]:
        """The nodes of some types: all of the first one, in the order of the text, before those of the next."""
        if len(kinds) == 1:
            return self._nodes.get(kinds[0], ())
        return [node for kind in kinds for node in self._nodes.get(kind, ())]


# The nodes that bind names, and those that read them.
_BINDING = (tree.Assign, tree.For, tree.Augment, tree.Clause)
_READING = (tree.Name, tree.ImaginaryUnit)


def resolve(program: tree.Module) -> Resolution:
    """What a program says of its names; found once, and kept on the tree."""
    try:
        found: Resolution = program._resolution  # type: ignore[attr-defined]
    except AttributeError:
        found = Resolution(program)
        object.__setattr__(program, "_resolution", found)
    return found


def called_operation(call: tree.Call) -> Operation | None:
    """The function of the table that a call means, None where it means none, as that of Python's `range` does."""
    if call.name in PYTHON_FUNCTIONS and call.receiver is None and not call.module:
        return None
    return table.find(call.name)


def root_of(node: tree.SyntaxNode) -> str | None:
    """The function or operator at the root of an expression; None for any other node."""
    return node.operator if isinstance(node, tree.Binary) else called_function(node)


def called_function(node: tree.SyntaxNode) -> str | None:
    """The name of the function of the table that a node calls, None where it calls none."""
    operation = called_operation(node) if isinstance(node, tree.Call) else None
    return operation.name if operation else None
