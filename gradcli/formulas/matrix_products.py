"""Rewrite rules for products, reshapes and transposes of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.formulas.algebra import Algebra, Call, Formula, Sum, is_call, is_constant
from gradcli.primitives.conversions import broadcast_to, permute, reshape
from gradcli.primitives.entries.linear import contract, matmul


def simplified_product(algebra: Algebra, operands: Sequence[Formula], shape: Shape) -> Formula | None:
    """A matrix product with the identity matrix or with a single-element matrix, simplified; else None."""
    for one, other in (operands, operands[::-1]):
        if other.shape == shape and _is_identity(one):
            return other
        if other.shape == shape and math.prod(one.shape) == 1:
            return algebra.multiply(one.children[0] if is_call(one, "reshape") else one, other)
    return None


def _is_identity(node: Formula) -> bool:
    if not isinstance(node, Call) or not is_constant(node) or len(node.shape) != 2:
        return False
    rows, columns = node.shape
    return rows == columns and arrays.tolist(node.array) == [[float(i == j) for j in range(rows)] for i in range(rows)]


def outer_product(algebra: Algebra, left: Formula, right: Formula) -> Formula | None:
    """The product of a column and a row as an outer product of two vectors; None if the operands are not these."""
    if not (is_call(left, "reshape") and is_call(right, "reshape")):
        return None
    (a,), (b,) = left.children, right.children
    if len(a.shape) != 1 or len(b.shape) != 1 or left.shape != (*a.shape, 1) or right.shape != (1, *b.shape):
        return None
    return algebra.call(contract, [a, b], {"terms": ("a", "b"), "result": "ab"}, a.shape + b.shape, "float64")


def reshaped(algebra: Algebra, operand: Formula, shape: Shape, dtype: str) -> Formula | None:
    """A simplified reshape: of a single element, of a reshape, or of a product with a row or a column; else None."""
    if 1 in (math.prod(shape), math.prod(operand.shape)):
        return operand
    if is_call(operand, "reshape"):
        (inner,) = operand.children
        return inner if inner.shape == shape else algebra.call(reshape, [inner], {"shape": shape}, shape, dtype)
    return _with_vector(algebra, operand, shape) if is_call(operand, "matmul") else None


def _with_vector(algebra: Algebra, product: Formula, shape: Shape) -> Formula | None:
    """A matrix-column or row-matrix product reshaped to a vector, as a product with a vector; else None."""
    left, right = product.children
    if len(shape) != 1 or len(left.shape) != 2 or len(right.shape) != 2:
        return None
    for i, (factor, sizes) in enumerate(((left, right.shape[:1]), (right, left.shape[1:]))):
        if is_call(factor, "reshape") and factor.children[0].shape == sizes and product.shape[i] == 1:
            operands = [left, right]
            operands[i] = factor.children[0]
            return algebra.call(matmul, operands, {}, shape, "float64")
    return None


def transposed(algebra: Algebra, node: Formula) -> Formula:
    """The transpose of a matrix; a transpose is undone and a broadcast single element broadcast to the other shape."""
    if _is_transpose(node):
        return node.children[0]
    if is_call(node, "broadcast_to") and math.prod(node.children[0].shape) == 1:
        return algebra.call(broadcast_to, node.children, {"shape": node.shape[::-1]}, node.shape[::-1], "float64")
    return algebra.call(permute, [node], {"axes": (1, 0)}, node.shape[::-1], "float64")


def without_transposes(algebra: Algebra, node: Formula, best: Callable[[Formula], Formula]) -> Iterator[Formula]:
    """The transpose of a product or sum through the transposes of its parts, and vector @ A.T as A @ vector."""
    if _is_transpose(node):
        (inner,) = node.children
        yield transposed(algebra, inner)
        if is_call(inner, "matmul") and all(len(c.shape) == 2 for c in inner.children):
            left, right = (best(transposed(algebra, c)) for c in inner.children)
            yield algebra.call(matmul, [right, left], {}, node.shape, "float64")
        elif isinstance(inner, Sum) and all(t.shape == inner.shape for t in inner.terms):
            yield algebra.add(*[algebra.scale(c, best(transposed(algebra, t))) for t, c in inner.terms.items()])
    elif is_call(node, "matmul"):
        left, right = node.children
        if len(left.shape) == 1 and _is_transpose(right):
            yield algebra.call(matmul, [right.children[0], left], {}, node.shape, "float64")


def _is_transpose(node: Formula) -> bool:
    return isinstance(node, Call) and is_call(node, "permute") and node.params["axes"] == (1, 0)
