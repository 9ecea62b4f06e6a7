"""The values of an operation that the backward pass needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SavedForBackward:
    """The values that backward needs to compute the gradients by some operands of a primitive.

    `rules` are the vjp rules of the requested operands, with the indices of these. `result` says whether a rule reads
    the result. `operands`, `shapes` and `fixed` are indices of operands: those whose values are read, those of which the
    shape is sufficient, and those that have no derivative although it was requested.
    """

    __slots__ = ("fixed", "operands", "result", "rules", "shapes")

    def __init__(
        self, wanted: int, rules: Sequence[Any], uses: Sequence[frozenset[int]], variadic: bool, kinks: bool
    ) -> None:
        """Find the needs for the operands in the bit mask `wanted`, whose highest bit marks the end.

        `rules` has the rule of each operand, None where there is none. `uses` has, for each rule, the positions that it
        reads: 0 is the result, 1 the first operand. A `variadic` primitive has one rule for all operands, which reads
        all of them as position 1. With `kinks` all operands are needed, to check whether the function is smooth there.
        """
        places = range(len(rules))
        asked = [i for i in places if wanted >> i & 1]
        own = [0 if variadic else i for i in places]
        self.rules = tuple((i, rules[i]) for i in asked if rules[i] is not None)
        read = frozenset[int]().union(*(uses[own[i]] for i, _ in self.rules))
        self.result = 0 in read
        self.operands = tuple(i for i in places if kinks or own[i] + 1 in read)
        self.shapes = tuple(i for i in places if i not in self.operands)
        self.fixed = tuple(i for i in asked if rules[i] is None)
