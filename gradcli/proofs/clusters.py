"""Joins boxes that touch each other."""

from __future__ import annotations

from typing import Any

import numpy as np

# Above this number of boxes, which no one reads, one box around all of them is given.
_MOST = 3_000


def clusters(low: Any, high: Any, margin: Any) -> list[tuple[Any, Any]]:
    """The smallest boxes around the groups of boxes `[boxes, n]` that are at most a margin apart in each direction."""
    if not len(low):
        return []
    if len(low) > _MOST:
        return [(low.min(axis=0), high.max(axis=0))]
    waiting = np.ones(len(low), bool)
    found = []
    while waiting.any():
        first = int(waiting.argmax())
        waiting[first] = False
        least, most = low[first], high[first]
        while True:
            near = waiting & ((low <= most + margin) & (high >= least - margin)).all(axis=1)
            if not near.any():
                break
            waiting &= ~near
            least, most = np.minimum(least, low[near].min(axis=0)), np.maximum(most, high[near].max(axis=0))
        found.append((least, most))
    return _apart(found, margin)


def _apart(boxes: list[tuple[Any, Any]], margin: Any) -> list[tuple[Any, Any]]:
    """The boxes, joined where the boxes around groups touch each other."""
    while True:
        low, high = (np.array([box[k] for box in boxes]) for k in range(2))
        touch = ((low[:, None] <= high[None] + margin) & (high[:, None] >= low[None] - margin)).all(axis=2)
        pairs = np.argwhere(np.triu(touch, 1))
        if not len(pairs):
            return boxes
        i, j = (int(k) for k in pairs[0])
        joined = np.minimum(low[i], low[j]), np.maximum(high[i], high[j])
        boxes = [box for k, box in enumerate(boxes) if k not in (i, j)] + [joined]
