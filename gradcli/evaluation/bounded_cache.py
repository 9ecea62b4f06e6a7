"""A cache of bounded size, for recordings and programs that are kept to be run again."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(dict[Key, Value]):
    """A dictionary to which items are added by assignment, at most `size`: a further one replaces the oldest.

    Items that are removed on use and added again are replaced in the order of their last use.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self and len(self) >= self._size:
            # Another thread may have removed the same item.
            self.pop(next(iter(self)), None)
        super().__setitem__(key, value)
