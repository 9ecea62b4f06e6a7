"""Dictionary encoding of text columns with repeated values: the distinct texts, and one integer code per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays

# NumPy dtype kinds in which elements are equal exactly where their texts are. Floats are excluded, since 0.0 == -0.0
# and their texts differ.
_PLAIN = "biuU"


class Categories(NamedTuple):
    """The distinct texts `names`, in which None stands for a missing text, and the integer `codes` `[n]`, the index
    into `names` of each row."""

    names: Sequence[str | None]
    codes: Any

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Categories:
        """The categories of n rows, given their texts."""
        np = arrays.numpy_namespace()
        known: dict[str | None, int] = {}
        codes = np.array([known.setdefault(text, len(known)) for text in texts], int)
        return cls([*known], codes)

    @classmethod
    def of_values(cls, values: Any, missing: Any) -> Categories:
        """The categories of an array of n elements converted to texts; the mask `missing` `[n]` marks missing elements,
        and is None where there are none."""
        np = arrays.numpy_namespace()
        n = len(values)
        heads = np.arange(n)
        if missing is None and values.ndim == 1 and values.dtype.kind in _PLAIN:
            # Each run of equal elements is converted to text only once.
            changes = np.ones(n, "bool")
            np.not_equal(values[1:], values[:-1], out=changes[1:])
            heads = changes.nonzero()[0]
        gone = [False] * len(heads) if missing is None else missing
        items = zip(values[heads].tolist(), gone)
        # nan, which is not equal to itself, counts as missing.
        found = cls.of([None if is_gone or item is None or item != item else str(item) for item, is_gone in items])
        return found if len(heads) == n else cls(found.names, np.repeat(found.codes, np.diff(heads, append=n)))

    @property
    def known(self) -> Any:
        """A mask `[n]` of the rows whose text is not missing."""
        return arrays.numpy_namespace().array([name is not None for name in self.names], "bool")[self.codes]

    def at(self, places: Any) -> Categories:
        """The categories of selected rows."""
        return Categories(self.names, self.codes[places])

    def texts(self) -> list[str | None]:
        """The text of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def grouped(self) -> dict[str | None, Any]:
        """The indices of the rows with each text, keyed by text in order of first appearance."""
        np = arrays.numpy_namespace()
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=len(self.names))
        there = counts.nonzero()[0]
        ends = np.cumsum(counts[there])
        starts = ends - counts[there]
        come = np.argsort(order[starts])
        bounds = zip(there[come].tolist(), starts[come].tolist(), ends[come].tolist())
        return {self.names[i]: order[start:end] for i, start, end in bounds}
