"""The values of an operation that the backward pass needs."""

from __future__ import annotations

from collections.abc import Sequence


class SavedForBackward:
    """The values that backward needs to compute the gradients by some operands of a primitive.

    `result` says whether it reads the result. `operands`, `shapes` and `fixed` are indices of operands: those whose
    values are read, those of which the shape is sufficient, and those that have no derivative although it was
    requested. `recorded` says whether there is a derivative by any requested operand.
    """

    __slots__ = ("fixed", "operands", "recorded", "result", "shapes")

    def __init__(self, wanted: int, ruled: int, uses: Sequence[frozenset[int]], variadic: bool, kinks: bool) -> None:
        """Find the needs for the operands in the bit mask `wanted`, whose highest bit marks the end; those in `ruled`
        have rules.

        `uses` has, for each rule, the positions that it reads: 0 is the result, 1 the first operand. A `variadic`
        primitive has one rule for all operands, which reads all of them as position 1. With `kinks` all operands are
        needed, to check whether the function is smooth there.
        """
        places = range(wanted.bit_length() - 1)
        rules = [0 if variadic else i for i in places]
        asked = [i for i in places if wanted >> i & 1]
        read = frozenset[int]().union(*(uses[rules[i]] for i in asked if ruled >> i & 1))
        self.recorded = any(ruled >> i & 1 for i in asked)
        self.result = 0 in read
        self.operands = tuple(i for i in places if kinks or rules[i] + 1 in read)
        self.shapes = tuple(i for i in places if i not in self.operands)
        self.fixed = tuple(i for i in asked if not ruled >> i & 1)
