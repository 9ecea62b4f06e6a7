"""The linear dependence of the values that a model reads in a row on its parameters and random effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.effects.effect_structure import EffectStructure
from gradcli.named_tuples import NamedTuple


class Addend(NamedTuple):
    """An effect that is added to the row variable at index `variable`: its places `[n]` among all effects, and its
    factors `[n]`."""

    variable: int
    places: Any
    factors: Any


class RowDesign:
    """The m row variables `names` of a model in n rows: parameters, of which some have values by level, and random
    effects.

    `slots` are by name the places of their values among all `numbers`: one place, or `[n]`; names of effects alone have
    none. The numbers are those of the `count` free parameters, followed by those of fixed ones.
    """

    def __init__(
        self,
        names: Sequence[str],
        slots: Mapping[str, Any],
        count: int,
        rows: int,
        structure: EffectStructure,
        factors: Sequence[Any],
    ) -> None:
        self.names, self.slots, self.count, self.rows = tuple(names), slots, count, rows
        self.structure = structure
        effects = [effect for each in structure.levels for effect in each.term.effects]
        self.addends = [
            Addend(self.names.index(effect.name), places, factor)
            for effect, places, factor in zip(effects, structure.of_rows, factors)
        ]
        self.varied = sorted({each.variable for each in self.addends})
        self._elements = {
            (r, s): structure.element(one.places, other.places)
            for r, one in enumerate(self.addends)
            for s, other in enumerate(self.addends)
        }

    def values(self, numbers: Any, effects: Any) -> dict[str, Any]:
        """The values of the row variables by name, one number or `[n]`, for all numbers and effects `[Q]`."""
        found: dict[str, Any] = {}
        for name in self.names:
            slot = self.slots.get(name)
            found[name] = 0.0 if slot is None else numbers[slot] if np.ndim(slot) else float(numbers[slot])
        for added in self.addends:
            name = self.names[added.variable]
            found[name] = found[name] + added.factors * effects[added.places]
        return found

    def direct(self, number: int) -> Any:
        """The derivatives `[m, n]` of the row variables by the number at a place."""
        found = np.zeros((len(self.names), self.rows))
        for j, name in enumerate(self.names):
            slot = self.slots.get(name)
            if slot is not None:
                found[j] = np.asarray(slot) == number
        return found

    def along(self, effects: Any) -> Any:
        """The change `[m, n]` of the row variables along effects `[Q]`."""
        found = np.zeros((len(self.names), self.rows))
        for added in self.addends:
            found[added.variable] += added.factors * effects[added.places]
        return found

    def gathered(self, slopes: Any) -> Any:
        """The derivatives `[Q]` by the effects, from those `[m, n]` by the row variables."""
        found = np.zeros(self.structure.count)
        for added in self.addends:
            weights = added.factors * slopes[added.variable]
            found += np.bincount(added.places, weights, self.structure.count)
        return found

    def gathered_matrix(self, bends: Any) -> Any:
        """The second derivatives by the effects as a matrix, from those `[m, m, n]` by the row variables."""
        found = np.zeros(self.structure.elements)
        for (r, s), places in self._elements.items():
            one, other = self.addends[r], self.addends[s]
            weights = one.factors * other.factors * bends[one.variable, other.variable]
            found += np.bincount(places, weights, self.structure.elements)
        return found

    def products(self, matrix: Any) -> Any:
        """The second moments `[m, m, n]` of the row variables, from those of the effects as a matrix."""
        m = len(self.names)
        found = np.zeros((m, m, self.rows))
        for (r, s), places in self._elements.items():
            one, other = self.addends[r], self.addends[s]
            found[one.variable, other.variable] += one.factors * other.factors * matrix[places]
        return found
