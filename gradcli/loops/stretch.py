"""Consecutive rounds of a loop that are run at a time."""

from __future__ import annotations

from gradcli.named_tuples import NamedTuple


class Stretch(NamedTuple):
    """The rounds from `begin` to before `end`, in the order of the counter, and where their rows are.

    With `reverse`, they run from the last one to the first. The array of each of the `sequences` begins with the row of
    this number, and that of the results with row `result`.
    """

    begin: int
    end: int
    reverse: bool
    sequences: tuple[int, ...]
    result: int = 0

    @property
    def rounds(self) -> range:
        """The numbers of the rounds, in the order in which they are run."""
        numbers = range(self.begin, self.end)
        return numbers[::-1] if self.reverse else numbers

    @property
    def first_row(self) -> int:
        """The row of the results that has the carries before the first round that is run."""
        return (self.end if self.reverse else self.begin) - self.result

    def row_after(self, number: int) -> int:
        """The row of the results that has the carries after a round."""
        return number + (0 if self.reverse else 1) - self.result
