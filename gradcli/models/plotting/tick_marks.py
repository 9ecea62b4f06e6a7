"""Axes of text plots: the positions of numbers along them, and round numbers for their ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gradcli import arrays

# The steps between ticks, as multiples of a power of 10.
_ROUND = (1.0, 2.0, 5.0, 10.0)
# An axis is extended to a tick that is at most this share of its length beyond its end.
_NEAR = 0.03
# Numbers that differ by less than `_LEAST`, or relatively by less than `_ALIKE`, count as equal, so that there are no
# ticks between them.
_LEAST, _ALIKE = 1e-300, 1e-13
# Tick labels have no exponent where the largest absolute value is in this range.
_PLAIN = (1e-4, 1e7)
# The greatest exponent of 10 of a float.
_MOST_POWER = 308.0


class Axis(NamedTuple):
    """The visible part of an axis; on a logarithmic one the ends are decimal logarithms."""

    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, numbers: Iterable[Any], log: bool, ticks: int | None = None) -> Axis:
        """The axis that contains all numbers of some arrays; with `ticks`, about this many ticks are intended and its
        ends are moved to ticks nearby."""
        np = arrays.numpy_namespace()
        scaled = [_scaled(n, log).ravel() for n in numbers]
        finite = np.concatenate([n[np.isfinite(n)] for n in scaled] or [np.zeros(1)])
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if high / 2 - low / 2 <= max(_LEAST, _ALIKE * max(abs(low), abs(high))):
            room = abs(low) / 2 or 1.0
            low, high = low - room, high + room
        return cls(low, high, log)._to(ticks) if ticks else cls(low, high, log)

    def placed(self, numbers: Any) -> Any:
        """The positions of numbers along the axis, 0 at its beginning and 1 at its end; nan for numbers without one."""
        with arrays.quiet():
            # Halves are subtracted, since the difference may overflow.
            return (_scaled(numbers, self.log) / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """The positions of at most about `most` round numbers, and their texts."""
        numbers, texts = self.marks(most), self._texts(most)
        places = [(n / 2 - self.low / 2) / (self.high / 2 - self.low / 2) for n in numbers]
        return [min(max(p, 0.0), 1.0) for p in places], [*texts]

    def marks(self, most: int) -> list[float]:
        """At most about `most` round numbers; decimal logarithms of them on a logarithmic axis."""
        even = self._even()
        return [math.log10(n) for n in even.marks(most)] if even is not None else self._multiples(self._step(most))

    def _texts(self, most: int) -> Iterator[str]:
        even = self._even()
        if even is not None:
            return even._texts(most)
        step = self._step(most)
        numbers = self._multiples(step)
        return map(_power, numbers) if self.log else _decimals(numbers, step)

    def _even(self) -> Axis | None:
        """The axis without logarithms, where a logarithmic axis has less than two powers of 10 and linear ticks say
        more."""
        if self.log and len(self._multiples(1.0)) < 2:
            return Axis(10**self.low, 10 ** min(self.high, _MOST_POWER), False)
        return None

    def _multiples(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]

    def _to(self, ticks: int) -> Axis:
        step, near = self._step(ticks), _NEAR * (self.high - self.low)
        low, high = math.floor(self.low / step) * step, math.ceil(self.high / step) * step
        return Axis(
            low if self.low - low <= near else self.low, high if high - self.high <= near else self.high, self.log
        )

    def _step(self, most: int) -> float:
        step = self.high / most - self.low / most
        size = 10.0 ** math.floor(math.log10(step))
        step = size * next((r for r in _ROUND if r * size >= step * (1 - 1e-9)), _ROUND[-1])
        return max(1.0, step) if self.log else step


def _scaled(numbers: Any, log: bool) -> Any:
    np = arrays.numpy_namespace()
    numbers = np.asarray(numbers, "float64")
    if not log:
        return numbers
    with arrays.quiet():
        return np.log10(np.where(numbers > 0, numbers, np.nan))


def _power(place: float) -> str:
    return f"{10**place:g}" if -4 <= place <= 5 else f"1e{round(place)}"


def _decimals(numbers: Sequence[float], step: float) -> Iterator[str]:
    """The texts of multiples of a step, all in one form, with enough digits to tell them apart."""
    size, least = max(map(abs, numbers), default=0.0), math.floor(math.log10(step) + 1e-9)
    low, high = _PLAIN
    exponent = bool(size) and not low <= size < high
    digits = math.floor(math.log10(size)) - least + 1 if size else 1
    for n in numbers:
        if exponent:
            # A multiple of a step may differ from 0 by rounding.
            yield f"{n:.{max(1, digits)}g}" if abs(n) > step / 2 else "0"
        else:
            # Adding 0.0 turns -0.0 into 0.0.
            yield f"{n + 0.0:.{max(0, -least)}f}"
