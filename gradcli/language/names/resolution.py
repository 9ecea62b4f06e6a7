"""The pass after parsing: what a program alone says of its names and calls, found once and kept on its tree.

The passes after it read what stands here. None of them walks the tree for names, or looks up a name in the table of
functions again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gradcli.language.names import binders
from gradcli.language.names.evaluator_functions import (
    CONTROL_FLOW,
    DERIVATIVES,
    FUNCTIONALS,
    PYTHON_FUNCTIONS,
    TRANSFORMS,
)
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.operation import Operation
from gradcli.type_hints import Any
from gradcli.type_hints import Literal as OneOf

# Whose meaning names without a prefix and methods have: that of PyTorch, of NumPy, of JAX (NumPy's meaning, but with
# immutable tensors), or "both" where it is ambiguous, as the program uses PyTorch and another library.
Dialect = OneOf["torch", "numpy", "jax", "both"]


class CallMeaning(NamedTuple):
    """The function of the table that a call runs, and whether its arguments fit the signature whatever they are."""

    operation: Operation
    fits: bool


CallMeanings = dict[tree.Call, CallMeaning]

# The nodes that bind names, and those that read them.
_BINDING = (tree.Assign, tree.For, tree.Augment, tree.Clause)
_READING = (tree.Name, tree.ImaginaryUnit)
# Functions of the language that take derivatives.
_DIFFERENTIATING = (TRANSFORMS - CONTROL_FLOW) | DERIVATIVES.keys()


class Resolution:
    """What a program says of its names without their values.

    `functions` are those that it defines, `with_backward` the definitions with a `backward` clause. `assigned` are the
    names that its statements bind, `bound` these and the parameters of its functions, `mentioned` the names that it
    reads or calls. `masks` are the names used as indices or masks, as `m` in `x[m]`, where a boolean selects differently
    than a number.

    `operations` has for each call the function of the table that its name means, None where it means none. `roots` has
    the name of that function, or the operator, for each such call and each binary operation, in the order of the text;
    `used` has all of these.

    `differentiates` says whether the program may take derivatives itself, `calls_functionals` whether it may call one
    of FUNCTIONALS, `has_imaginary_literals` whether it has numbers such as `2j`, and `2i` where `i` may have no value,
    `makes_complex` whether it may make complex numbers of real ones, and `changes_in_place` whether it may change
    tensors in place: by assigning to elements, or by `+=` and the like.
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
        self.used = frozenset(self.roots.values())
        self.functions = frozenset([define.name for define in self.nodes(tree.Define)])
        self.with_backward = [define for define in self.nodes(tree.Define) if define.backward is not None]
        self.assigned = frozenset[str]().union(*map(binders.bound_by, self.nodes(*_BINDING)))
        self.bound = self.assigned.union([parameter.name for parameter in self.nodes(tree.Parameter)])
        self.mentioned = frozenset(
            [call.name for call in self.operations] + [name.id for name in self.nodes(*_READING)]
        )
        self.masks = _masks(self)
        self.differentiates = not self.mentioned.isdisjoint(_DIFFERENTIATING)
        self.calls_functionals = not self.mentioned.isdisjoint(FUNCTIONALS)
        self.has_imaginary_literals = bool(self.nodes(tree.Imaginary, tree.ImaginaryUnit))
        self.makes_complex = self.has_imaginary_literals or _names_complex(self)
        self.changes_in_place = _changes_in_place(self)
        # What the passes that follow found, whose errors belong to them: see `scope`, `dialects` and `call_meanings`.
        self.has_known_functions = False
        self.dialect: Dialect | None = None
        self.meanings: CallMeanings | None = None

    def nodes(self, *kinds: type) -> Sequence[Any]:
        """The nodes of some types: all of the first one, in the order of the text, before those of the next."""
        if len(kinds) == 1:
            return self._nodes.get(kinds[0], ())
        return [node for kind in kinds for node in self._nodes.get(kind, ())]

    def targets(self, inputs: Collection[str]) -> frozenset[str]:
        """The names by which the program itself differentiates."""
        if self.mentioned.isdisjoint(_DIFFERENTIATING):
            return frozenset()
        named = {a.id for call in self.operations for a in _targets(call) if isinstance(a, tree.Name)}
        # Arguments of `diff` after the second are its order or further inputs to differentiate by.
        mixed = {
            a.id
            for call in self.operations
            if call.name == "diff" and not call.module
            for a in tree.positional(call)[2:]
            if isinstance(a, tree.Name)
        }
        return frozenset(named | mixed.intersection(inputs))


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


def _targets(call: tree.Call) -> Iterator[tree.SyntaxNode]:
    """The arguments that a call may differentiate by."""
    if call.module == "torch.autograd" and call.name == "grad":
        given = [*call.arguments[1:2], *(k.value for k in call.keywords if k.name == "inputs")]
        yield from (n for a in given for n in tree.walk(a))
    elif call.name in DERIVATIVES:
        yield from tree.positional(call)[1:2]
        yield from (k.value for k in call.keywords if k.name == "x")


# Functions that select elements by positions or masks.
_BY_MASKS = frozenset({"masked_select", "masked_fill", "masked_scatter", "index_put"})


def _masks(resolution: Resolution) -> frozenset[str]:
    parts: list[tree.SyntaxNode] = [item for index in resolution.nodes(tree.Index) for item in index.items]
    for call in resolution.operations:
        if call.name in _BY_MASKS:
            parts += [*call.arguments, *(keyword.value for keyword in call.keywords)]
    found: set[str] = set()
    for part in parts:
        if isinstance(part, tree.Name) and not part.module:
            found.add(part.id)
        elif isinstance(part, (tree.List, tree.Unary)) or (isinstance(part, tree.Binary) and part.operator in "&|"):
            parts += tree.children(part)
    return frozenset(found)


# Functions that give complex numbers for real ones, and parts of the names of others: `rfft2`, `linalg.eigvals`.
COMPLEX = frozenset("complex polar view_as_complex complex64 complex128 roots sqrtm logm schur hilbert".split())  # noqa: SIM905
_COMPLEX_PARTS = ("fft", "eig")
COMPLEX_DTYPES = ("complex128", "complex64", "cdouble", "cfloat", "complex")


def _names_complex(resolution: Resolution) -> bool:
    """Return whether a program calls a function that gives complex numbers for real ones, or names a complex dtype."""
    return (
        any(name.id in COMPLEX_DTYPES for name in resolution.nodes(tree.Name))
        or any(string.value in COMPLEX_DTYPES for string in resolution.nodes(tree.String))
        or any(call.name in COMPLEX or any(p in call.name for p in _COMPLEX_PARTS) for call in resolution.operations)
    )


def _changes_in_place(resolution: Resolution) -> bool:
    targets = (target for assign in resolution.nodes(tree.Assign) for target in assign.targets)
    elements = (isinstance(n, tree.Index) for target in targets for n in tree.walk(target))
    return bool(resolution.nodes(tree.Augment)) or any(elements)
