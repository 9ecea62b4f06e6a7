"""The functions that operators and attributes of the language call, and the spans that error messages point at."""

from __future__ import annotations

import functools
from collections.abc import Callable

from gradcli import arrays
from gradcli.errors import Span
from gradcli.language.names.resolution import called_function
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.entries.shape import matrix_transpose, transpose
from gradcli.type_hints import Any

# The binary operators, by symbol.
_OPERATORS = {symbol: table.known(name) for name, symbol in table.operators().items() if name != "negative"}
BINARY = {symbol: operation for symbol, operation in _OPERATORS.items() if operation.derivative != "none"}
COMPARE = {symbol: operation for symbol, operation in _OPERATORS.items() if operation.derivative == "none"}
# Elementwise operators of booleans.
TRUTH = {"&": table.known("logical_and"), "|": table.known("logical_or")}
ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "T": transpose,
    "mT": matrix_transpose,
    # Called by name, as few programs have complex numbers.
    "real": lambda x: table.known("real")(x),
    "imag": lambda x: table.known("imag")(x),
    "H": lambda x: table.known("conj")(transpose(x)),
    "mH": lambda x: table.known("conj")(matrix_transpose(x)),
    "shape": lambda x: arrays.asarray([float(s) for s in arrays.shape(x)], arrays.default_dtype()),
    "ndim": lambda x: float(len(arrays.shape(x))),
    "size": lambda x: float(functools.reduce(lambda a, b: a * b, arrays.shape(x), 1)),
    # A string, to be passed as `dtype=`.
    "dtype": lambda x: "bool" if arrays.dtype_name(x) == "bool" else _dtype(x),
}


def _dtype(x: Any) -> str:
    return arrays.complex_dtype(arrays.default_dtype()) if arrays.is_complex(x) else arrays.default_dtype()


# Whole numbers below this are exact as floats.
EXACT_INTEGERS = 2.0**53
# Longest span in characters; the span of a longer expression is that of its operator.
_LONG_SPAN = 72


def error_span(node: tree.SyntaxNode) -> Span:
    """The span to point at for an operation: all of it, or its operator where that is too long."""
    if isinstance(node, tree.Binary) and node.span.end - node.span.start > _LONG_SPAN:
        return node.operator_span
    return node.span


def operation_at(program: tree.Module, span: Span) -> str | None:
    """The name of the operation at a span: a function or an operator. None where there is none."""
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Binary) and error_span(node) == span:
            return BINARY[node.operator].name
        if isinstance(node, tree.Call) and node.span == span:
            return called_function(node) or node.name
    return None
