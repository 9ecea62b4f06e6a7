"""What the way back through an operation needs of it."""

from __future__ import annotations

from collections.abc import Sequence


class Needs:
    """What backward needs to differentiate by some operands: the `result` or not, and `operands` by their places.

    Of those in `shapes` the shape is enough. By those in `fixed` there is no derivative, though it was asked for;
    `recorded` says that there is one by others.
    """

    __slots__ = ("fixed", "operands", "recorded", "result", "shapes")

    def __init__(self, wanted: int, ruled: int, uses: Sequence[frozenset[int]], variadic: bool, kinks: bool) -> None:
        """For the operands in the bit mask `wanted`, in which a bit more stands for the end; those in the mask `ruled` have
        rules. `uses` says of each rule what it reads: 0 is the result, 1 the first operand; where `variadic`, one is for
        all, and reads all of them as 1. Where there are `kinks`, all operands say whether there is one."""
        places = range(wanted.bit_length() - 1)
        rules = [0 if variadic else i for i in places]
        asked = [i for i in places if wanted >> i & 1]
        read = frozenset[int]().union(*(uses[rules[i]] for i in asked if ruled >> i & 1))
        self.recorded = any(ruled >> i & 1 for i in asked)
        self.result = 0 in read
        self.operands = tuple(i for i in places if kinks or rules[i] + 1 in read)
        self.shapes = tuple(i for i in places if i not in self.operands)
        self.fixed = tuple(i for i in asked if not ruled >> i & 1)
