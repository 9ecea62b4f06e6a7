"""Maps parameters to all real numbers, on which the sampler moves, with the logarithm of the Jacobian.

Numbers between bounds are mapped as arrays; for ordered vectors and simplexes, the log density is rewritten so that
they are functions of vectors of any real numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, UsageError
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.model_texts import ComposedProgram, Relocation
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name


class BoundedTransform:
    """The transform of vectors between `low` and `high` `[n]`: a logarithm where one of them is finite, log-odds where
    both are, and the identity elsewhere."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high
        bounded = np.isfinite(low), np.isfinite(high)
        self._both = bounded[0] & bounded[1]
        self._below, self._above = bounded[0] & ~bounded[1], bounded[1] & ~bounded[0]

    def kinds(self) -> dict[str, Any]:
        """The places of the numbers with an end `below`, `above` or on `both` sides, and of those that are `free`."""
        kinds = {"below": self._below, "above": self._above, "both": self._both}
        kinds["free"] = ~(self._below | self._above | self._both)
        return {name: np.flatnonzero(mask) for name, mask in kinds.items()}

    def inverse(self, x: Any) -> Any:
        """The real numbers for a vector inside of its bounds."""
        free = np.array(x, float)
        for place, distance in ((self._below, x - self.low), (self._above, self.high - x)):
            free[place] = np.log(distance[place])
        both = self._both
        free[both] = np.log(x[both] - self.low[both]) - np.log(self.high[both] - x[both])
        return free

    def numbers(self, free: Any) -> Any:
        """The vectors for arrays of real numbers `[…, n]`."""
        x = free.copy()
        below, above, both = self._below, self._above, self._both
        x[..., below] = self.low[below] + np.exp(free[..., below])
        x[..., above] = self.high[above] - np.exp(free[..., above])
        x[..., both] = self.low[both] + (self.high[both] - self.low[both]) / (1.0 + np.exp(-free[..., both]))
        return x

    def forward(self, free: Any) -> tuple[Any, Any, float, Any]:
        """For real numbers: the vector, its derivatives `[n]`, the logarithm of the Jacobian and its gradient `[n]`."""
        x, slope, gradient = free.copy(), np.ones(len(free)), np.zeros(len(free))
        logarithm = 0.0
        below, above, both = self._below, self._above, self._both
        if below.any():
            slope[below] = np.exp(free[below])
            x[below] = self.low[below] + slope[below]
        if above.any():
            slope[above] = -np.exp(free[above])
            x[above] = self.high[above] + slope[above]
        one_sided = below | above
        gradient[one_sided] = 1.0
        logarithm += float(free[one_sided].sum())
        if both.any():
            share = 1.0 / (1.0 + np.exp(-free[both]))
            width = self.high[both] - self.low[both]
            x[both] = self.low[both] + width * share
            slope[both] = width * share * (1.0 - share)
            gradient[both] = 1.0 - 2.0 * share
            odds = abs(free[both])
            logarithm += float((np.log(width) - odds - 2.0 * np.log1p(np.exp(-odds))).sum())
        return x, slope, logarithm, gradient


ORDERED, SIMPLEX = "an ordered vector", "a simplex"
# Distance of the sum of a start from 1 that counts as rounding.
_ROUNDING = 1e-6


class ConstrainedVector(NamedTuple):
    """The vector `name`, of a kind, that is computed from the vector `free`. That of a simplex is multiplied by `basis`,
    the name of a constant: orthonormal columns that are orthogonal to a vector of ones."""

    name: str
    kind: str
    free: str
    basis: str

    def statement(self) -> str:
        if self.kind == ORDERED:
            return f"{self.name} = cumsum(cat([{self.free}[:1], exp({self.free}[1:])]))"
        return f"{self.name} = softmax(matmul({self.basis}, {self.free}), 0)"

    def jacobian(self) -> str:
        """The logarithm of the Jacobian, up to a constant."""
        if self.kind == ORDERED:
            return f"sum({self.free}[1:])"
        return f"sum(log_softmax(matmul({self.basis}, {self.free}), 0))"

    def inverse(self, start: Any) -> Any:
        """The free vector of a start. Raises BindingError where the start is not of the kind."""
        start = np.asarray(start, "float64")
        if start.ndim != 1 or len(start) < 2:
            raise BindingError(f"'{self.name}' is a vector of at least 2 numbers", hint=f"{self.name}='[0.5,0.5]'")
        if self.kind == ORDERED:
            steps = np.diff(start)
            if not (steps > 0).all():
                raise BindingError(f"the start of '{self.name}' does not increase", hint=f"{self.name}='[1,2]'")
            return np.concatenate([start[:1], np.log(steps)])
        if not (start > 0).all() or abs(start.sum() - 1) > _ROUNDING:
            raise BindingError(
                f"the start of '{self.name}' is not of numbers above 0 with the sum 1",
                hint=f"{self.name}='[0.5,0.5]'",
            )
        return _basis(len(start)).T @ np.log(start)

    def numbers(self, free: Any) -> Any:
        """The vectors for free ones `[…, n]`."""
        if self.kind == ORDERED:
            return np.cumsum(np.concatenate([free[..., :1], np.exp(free[..., 1:])], axis=-1), axis=-1)
        logits = free @ _basis(free.shape[-1] + 1).T
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return shares / shares.sum(axis=-1, keepdims=True)


class FreeDensity(NamedTuple):
    """A log density without constraints on vectors: the `program`, in whose errors the `relocation` shows the text as it is
    written; the `given` values and the names of `constants`; and the names that are drawn, `wrt`, None for all."""

    program: str
    relocation: Relocation
    given: Mapping[str, Any]
    constants: Sequence[str]
    wrt: Sequence[str] | None
    vectors: Sequence[ConstrainedVector]


def freed(
    program: str,
    given: Mapping[str, Any],
    constants: Sequence[str],
    wrt: Sequence[str] | None,
    kinds: Mapping[str, str],
    taken: Collection[str],
) -> FreeDensity:
    """Rewrite a program in which the names in `kinds` are vectors with constraints; `taken` are names of others.

    Raises BindingError for a name that is not drawn, and for a start that does not meet its constraint.
    """
    relocation = Relocation(program)
    if not kinds:
        return FreeDensity(program, relocation, given, constants, wrt, [])
    module = parse_charged(program)
    used = {*taken, *given, *scope.free_names(module), *resolve(module).bound}
    vectors: list[ConstrainedVector] = []
    for name, kind in kinds.items():
        if name not in given or name in constants or (wrt is not None and name not in wrt):
            raise BindingError(
                f"'{name}' is {kind}, and has no start from which it is drawn", hint=f"{name}='[0.25,0.75]'"
            )
        own = [unused_name(f"{what}_{name}", used) for what in ("free", "basis")]
        vectors.append(ConstrainedVector(name, kind, *own))
    *_, last = module.body
    if not isinstance(last, tree.Evaluate):
        raise UsageError("the program ends with no expression", hint="write the log density after it")
    begin, end = last.value.span
    composed = ComposedProgram().add("".join(f"{each.statement()}\n" for each in vectors))
    composed.add(program[: last.span.start], 0).add("(").add(program[begin:end], begin).add(")")
    composed.add("".join(f" + {each.jacobian()}" for each in vectors))
    text = relocation.parsed(composed).source
    by_name = {each.name: each for each in vectors}
    found: dict[str, Any] = {}
    for name, value in given.items():
        vector = by_name.get(name)
        found[name if vector is None else vector.free] = value if vector is None else vector.inverse(value)
    simplexes = [each for each in vectors if each.kind == SIMPLEX]
    found |= {each.basis: _basis(len(given[each.name])) for each in simplexes}
    drawn = None if wrt is None else [by_name[name].free if name in by_name else name for name in wrt]
    return FreeDensity(text, relocation, found, [*constants, *(each.basis for each in simplexes)], drawn, vectors)


def kinds_of(ordered: Sequence[str], simplex: Sequence[str]) -> dict[str, str]:
    """The kinds of vectors by name. Raises UsageError for a name that is of both."""
    for name in ordered:
        if name in simplex:
            raise UsageError(f"'{name}' is a simplex, which is not ordered", hint="leave out one of them")
    return {**dict.fromkeys(ordered, ORDERED), **dict.fromkeys(simplex, SIMPLEX)}


def _basis(count: int) -> Any:
    """An orthonormal basis `[count, count - 1]` of the vectors that sum to 0, by which log-ratios are isometric (J. J.
    Egozcue and others, Math. Geol. 35 (2003) 279)."""
    from scipy.linalg import helmert

    return helmert(count).T
