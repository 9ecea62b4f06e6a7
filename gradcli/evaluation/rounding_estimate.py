"""Estimates the rounding errors of a run from its ordinary backward pass, to decide whether a second run is worthwhile.

To first order the error of a result is the sum over all operations of their rounding error times the derivative of the
result by their output: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16 (1976). The
magnitudes of these terms select the runs that are repeated with other roundings to find how many digits are right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.errors import Span
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.arithmetic import add, subtract

# Ratio of the largest term to a result from which a run is repeated. It is some bits below half of the digits, as terms
# add up.
_SUSPECT = {"float64": 2.0**22, "float32": 2.0**8}
# Limits on the number of nodes and on the size of tensors; larger runs are not estimated.
_MOST_NODES = 2_000
_MOST_ELEMENTS = 1_000
# The types of results that are single numbers.
_NUMBERS = frozenset({float, complex})


class RoundingErrorEstimate:
    """The largest error term of one run, and the operation that it belongs to."""

    def __init__(self) -> None:
        self.place: Span | None = None
        # Whether every operation gave a scalar.
        self._scalar = True
        # Whether a sum of nonzero numbers is zero.
        self._vanished = False
        # By node or leaf, the sum of the nonzero cotangents sent to it.
        self._sent: dict[Any, complex] = {}
        self._largest = 0.0
        self._results: dict[Node, Any] = {}
        self._whole = True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within the block, keep the results of operations."""
        token = recorders.set((self._keep, *recorders.get()))
        try:
            yield
        finally:
            recorders.reset(token)

    def _keep(self, node: Node, result: Any) -> None:
        if type(result) not in _NUMBERS:
            self._scalar = False
            if arrays.backend_of(type(result)) != "numpy" or arrays.size(result) > _MOST_ELEMENTS:
                self._whole = False
                return
        elif result == 0.0 and isinstance(node, PrimitiveNode) and node.primitive in (add, subtract):
            self._vanished = True
        if len(self._results) < _MOST_NODES:
            self._results[node] = result
        else:
            self._whole = False

    def see(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        """Note the error term of an operation that a backward pass visits, and the cotangents that it sends to its
        operands."""
        for edge, cotangent in zip(node.edges, pulled):
            if edge is not None and type(cotangent) in _NUMBERS and cotangent != 0.0:
                self._sent[edge[0]] = self._sent.get(edge[0], 0.0) + cotangent
        result = self._results.get(node)
        # Batched cotangents are those of several backward passes, not of the gradient.
        if result is not None and cotangents[0] is not None and not isinstance(cotangents[0], Kind):
            size = _size(cotangents[0], result)
            if size > self._largest:
                self._largest, self.place = size, node.span

    @property
    def is_whole(self) -> bool:
        """True if all operations were noted, and there are some."""
        return self._whole and bool(self._results)

    def is_suspect(self, value: Any, gradients: Mapping[str, Any], leaves: Mapping[str, Any]) -> bool:
        """Return whether the scalar value or a gradient may have lost half of its digits."""
        if not self.is_whole:
            return False
        shares: list[float] = []
        for name, g in gradients.items():
            if type(g) in _NUMBERS:
                shares.append(_size(g, leaves[name]))
            elif g is not None:
                shares += _sizes(g, leaves[name])
        sizes = [_modulus(complex(value)), *shares]
        if min(sizes) == 0.0 and (not self._scalar or self._vanished or 0.0 in self._sent.values()):
            return True
        smallest = min([sizes[0], *(s for s in shares if s > 0.0)])
        return max(self._largest, *sizes) > _SUSPECT[arrays.real_dtype(arrays.dtype_name(value))] * smallest


def _modulus(number: complex) -> float:
    # `abs` raises an exception where the result is beyond floats.
    return math.hypot(number.real, number.imag)


def _size(derivative: Any, number: Any) -> float:
    """The largest magnitude of a derivative times the number that it is taken by."""
    if type(derivative) in _NUMBERS and type(number) in _NUMBERS:
        return _modulus(derivative * number)
    products = _products(derivative, number)
    return 0.0 if products is None else float(products.max(initial=0.0))


def _sizes(derivative: Any, number: Any) -> Sequence[float]:
    """The magnitudes of a derivative times the numbers that it is taken by."""
    products = _products(derivative, number)
    return [] if products is None else products.ravel().tolist()


def _products(derivative: Any, number: Any) -> Any:
    """The magnitudes of the products as a NumPy array; None for arrays of other libraries."""
    if arrays.backend_of(type(derivative)) not in ("numpy", None):
        return None
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        return xp.abs(xp.multiply(derivative, number))
