"""What the operators and attributes of the language compute, and where to point for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.errors import Span
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.shape import matrix_transpose, transpose

# The operators between two operands.
_OPERATORS = {symbol: table.known(name) for name, symbol in table.operators().items() if name != "negative"}
BINARY = {symbol: operation for symbol, operation in _OPERATORS.items() if operation.derivative != "none"}
COMPARE = {symbol: operation for symbol, operation in _OPERATORS.items() if operation.derivative == "none"}
# The operators between truth values, element by element.
TRUTH = {"&": table.known("logical_and"), "|": table.known("logical_or")}
ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "T": transpose,
    "mT": matrix_transpose,
    "shape": lambda x: arrays.asarray([float(s) for s in arrays.shape(x)], arrays.default_dtype()),
    "ndim": lambda x: float(len(arrays.shape(x))),
    "size": lambda x: float(functools.reduce(lambda a, b: a * b, arrays.shape(x), 1)),
    # A text, for `dtype=`: all numbers of a program are of one.
    "dtype": lambda x: "bool" if arrays.dtype_name(x) == "bool" else arrays.default_dtype(),
}
# An expression longer than this is pointed at by its operator.
_LONG_SPAN = 72


def place(node: tree.SyntaxNode) -> Span:
    """Where to point for an operation: at all of it, unless that is too long to see."""
    if isinstance(node, tree.Binary) and node.span.end - node.span.start > _LONG_SPAN:
        return node.operator_span
    return node.span


def operation_at(program: tree.Module, span: Span) -> str | None:
    """What the program calls the operation at a place: the function of a call, the name of an operator."""
    for node in tree.everything(program):
        if isinstance(node, tree.Binary) and place(node) == span:
            return BINARY[node.operator].name
        if isinstance(node, tree.Call) and node.span == span:
            operation = table.find(node.name)
            return operation.name if operation else node.name
    return None
