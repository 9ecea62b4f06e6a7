"""Columns of texts in which most are met again: each of them once, and a number for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays

# Kinds of arrays in which equal elements have equal texts; 0.0 and -0.0 have not.
_PLAIN = "biuU"


class Categories(NamedTuple):
    """The texts `names`, all different, None for one that is missing, and `codes` `[n]`, the place of each row's text
    among them."""

    names: Sequence[str | None]
    codes: Any

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Categories:
        """Those of the texts of n rows."""
        np = arrays.numpy_namespace()
        known: dict[str | None, int] = {}
        codes = np.array([known.setdefault(text, len(known)) for text in texts], int)
        return cls([*known], codes)

    @classmethod
    def of_values(cls, values: Any, missing: Any) -> Categories:
        """Those of an array of n elements as texts; `missing` says which are, None for none."""
        np = arrays.numpy_namespace()
        n = len(values)
        heads = np.arange(n)
        if missing is None and values.ndim == 1 and values.dtype.kind in _PLAIN:
            # A run of equal elements is one text.
            changes = np.ones(n, "bool")
            np.not_equal(values[1:], values[:-1], out=changes[1:])
            heads = changes.nonzero()[0]
        gone = [False] * len(heads) if missing is None else missing
        items = zip(values[heads].tolist(), gone)
        # nan is no number, and equal to nothing.
        found = cls.of([None if is_gone or item is None or item != item else str(item) for item, is_gone in items])
        return found if len(heads) == n else cls(found.names, np.repeat(found.codes, np.diff(heads, append=n)))

    @property
    def known(self) -> Any:
        """Which rows have a text."""
        return arrays.numpy_namespace().array([name is not None for name in self.names], "bool")[self.codes]

    def at(self, places: Any) -> Categories:
        """Those of some of the rows."""
        return Categories(self.names, self.codes[places])

    def texts(self) -> list[str | None]:
        """The text of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    def grouped(self) -> dict[str | None, Any]:
        """The places of the rows that have each text, in the order in which the texts come."""
        np = arrays.numpy_namespace()
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=len(self.names))
        there = counts.nonzero()[0]
        ends = np.cumsum(counts[there])
        starts = ends - counts[there]
        come = np.argsort(order[starts])
        bounds = zip(there[come].tolist(), starts[come].tolist(), ends[come].tolist())
        return {self.names[i]: order[start:end] for i, start, end in bounds}
