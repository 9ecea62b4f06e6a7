"""Labels the results of a run: by the names that the user gave, by the element that was read, or by v1, v2, …"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.formulas import languages
from gradcli.language.interpreter.expression_trace import Event, ExpressionTrace
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.syntax import tree

# The labels of the value of a program where that has no name; the first one that the program does not use.
_OF_VALUE = ("f", "F", "value")


def tracked_source(value: Any) -> Any:
    """The operation or leaf that made a value which depends on a leaf; None for other values."""
    tensor = value.value if isinstance(value, MutableReference) else value
    if not isinstance(tensor, Tensor) or not tensor.requires_grad:
        return None
    return tensor.grad_fn or tensor


class Labels:
    """The labels of leaves and of the operations `shown`.

    Each has an identifier, a name that is unique in the formulas, a label for readers, and a symbol, which is the label in the
    language of the formulas.
    """

    def __init__(
        self,
        program: tree.Module,
        leaves: Mapping[str, Tensor],
        trace: ExpressionTrace,
        shown: Sequence[Node],
        language: str,
    ) -> None:
        names = {n.id for n in tree.all_nodes(program) if isinstance(n, (tree.Name, tree.Input))}
        names |= {n.name for n in tree.all_nodes(program) if isinstance(n, (tree.BoundName, tree.Call, tree.Parameter))}
        self._taken = {*names, *leaves}
        self._language = languages.find(language)
        self.identifiers: dict[Any, str] = {}
        self._labels: dict[Any, str] = {}
        for name, leaf in leaves.items():
            self.identifiers[leaf] = self._labels[leaf] = name
        given = _names(trace.root)
        elements = _elements(program, trace.root)
        used = {*leaves}
        numbers = itertools.count(1)
        for place, node in enumerate(shown, 1):
            if node in given:
                self._name(node, self._version(given[node], used))
                used.add(self.identifiers[node])
            elif node in elements:
                self._name(node, self._free(f"{elements[node].split('[')[0]}_element"), elements[node])
            else:
                numbered = (f"v{next(numbers)}" for _ in itertools.count())
                spelled = itertools.chain(_OF_VALUE if place == len(shown) else (), numbered)
                self._name(node, next(n for n in spelled if n not in self._taken))

    def _name(self, node: Any, identifier: str, label: str | None = None) -> None:
        self.identifiers[node] = identifier
        self._labels[node] = label or identifier
        self._taken.add(identifier)

    def _version(self, name: str, used: set[str]) -> str:
        """The name of a variable, which is numbered where an earlier value has the name already."""
        return name if name not in used else self._free(name, 2)

    def _free(self, stem: str, first: int = 1) -> str:
        return next(n for i in itertools.count(first) if (n := f"{stem}_{i}") not in self._taken)

    def label(self, of: Any) -> str:
        """The label for readers; "f" for a value without one."""
        return self._labels.get(of, _OF_VALUE[0])

    def symbol(self, of: Any) -> str:
        """The label as a symbol: as it is in text, else in LaTeX, with the positions of an element as a subscript."""
        label = self.label(of)
        if self._language.name == "text":
            return label
        name, _, place = label.removesuffix("]").partition("[")
        naming = self._language.naming
        spelled = next(iter(naming.spellings(name)))
        if not place:
            return spelled
        return f"{spelled}_{{{place}}}" if "_" not in spelled else f"\\left({spelled}\\right)_{{{place}}}"


def _events(root: Event) -> list[Event]:
    found, waiting = [], [root]
    while waiting:
        event = waiting.pop()
        found.append(event)
        waiting += reversed(event.events)
    return found


def _names(root: Event) -> dict[Any, str]:
    """The first name of each operation."""
    found: dict[Any, str] = {}
    for event in _events(root):
        for name, value in event.bound:
            source = tracked_source(value)
            if isinstance(source, Node):
                found.setdefault(source, name)
    return found


def _elements(program: tree.Module, root: Event) -> dict[Any, str]:
    """The text of an expression that reads an element of a named tensor by literal positions."""
    found: dict[Any, str] = {}
    for event in _events(root):
        node = event.node
        if (
            isinstance(node, tree.Index)
            and isinstance(node.value, tree.Name)
            and all(isinstance(item, tree.Number) for item in node.items)
        ):
            source = tracked_source(event.value)
            if isinstance(source, Node):
                text = program.source[node.span.start : node.span.end]
                found.setdefault(source, "".join(text.split()))
    return found
