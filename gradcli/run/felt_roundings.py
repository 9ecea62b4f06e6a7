"""How far the roundings of a run are felt in its value and gradient, from what a backward pass shows of them anyway.

To first order a result is off by the sum over all operations of what each rounds off times the derivative of the result by
it: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16 (1976). The sizes of these terms say which
runs are worth a second one with other roundings, which tells how many digits are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node, recorders
from gradcli.errors import Span
from gradcli.primitives.bind import Kind

# A run is worth a second one where a term is so many times as large as a result: some bits below half of them, as terms add
# up.
_SUSPECT = {"float64": 2.0**22, "float32": 2.0**8}
# Longer runs and larger tensors are not looked at.
_MOST_NODES = 2_000
_MOST_ELEMENTS = 1_000


class FeltRoundings:
    """The largest of the terms of one run, and the operation that it is of."""

    def __init__(self) -> None:
        self.place: Span | None = None
        # Whether every operation gave a number.
        self.scalar = True
        self._largest = 0.0
        self._results: dict[Node, Any] = {}
        self._whole = True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within the block, the results of operations are kept."""
        token = recorders.set((self._keep, *recorders.get()))
        try:
            yield
        finally:
            recorders.reset(token)

    def _keep(self, node: Node, result: Any) -> None:
        if type(result) is not float:
            self.scalar = False
            if arrays.backend_of(type(result)) != "numpy" or arrays.size(result) > _MOST_ELEMENTS:
                self._whole = False
                return
        if len(self._results) < _MOST_NODES:
            self._results[node] = result
        else:
            self._whole = False

    def see(self, node: Node, cotangents: Sequence[Any]) -> None:
        """Note the term of an operation that a backward pass visits."""
        result = self._results.get(node)
        # Those of several passes at once are not of the gradient.
        if result is not None and cotangents[0] is not None and not isinstance(cotangents[0], Kind):
            size = _size(cotangents[0], result)
            if size > self._largest:
                self._largest, self.place = size, node.span

    def is_suspect(self, value: Any, gradients: Mapping[str, Any], leaves: Mapping[str, Any]) -> bool:
        """Whether the value, a number, or a gradient may have lost half of its digits."""
        if not self._whole or not self._results:
            return False
        shares = [_size(g, leaves[name]) for name, g in gradients.items() if g is not None]
        sizes = [abs(float(value)), *(s for s in shares if s > 0.0)]
        return max(self._largest, *sizes) > _SUSPECT[arrays.dtype_name(value)] * min(sizes)


def _size(derivative: Any, number: Any) -> float:
    """The largest product of a derivative and what it is by."""
    if type(derivative) is float and type(number) is float:
        return abs(derivative * number)
    if arrays.backend_of(type(derivative)) not in ("numpy", None):
        return 0.0
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        return float(xp.max(xp.abs(xp.multiply(derivative, number)), initial=0.0))
