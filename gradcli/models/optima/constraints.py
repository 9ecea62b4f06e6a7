"""Equality and inequality constraints as residuals of one vector of variables, with exact first and second
derivatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import EvaluationError, GradcliError, LimitError, ProgramSyntaxError, Span
from gradcli.evaluation import session
from gradcli.models.optima.bounds import outside_brackets
from gradcli.models.optima.objectives import matrix
from gradcli.models.packing import Packing
from gradcli.named_tuples import NamedTuple

_RELATION = re.compile(r"<=|>=|==|!=|<|>|=")

# Compiles the text of a program with the limits of a run.
Compile = Callable[[str], CompiledProgram]


class Relation(NamedTuple):
    """A constraint as it is written: `left <= right`, or `left = right` for an equation."""

    text: str
    left: str
    right: str
    is_equation: bool

    @property
    def residual(self) -> str:
        """The text of the residual, which must be at most 0, or 0 for an equation."""
        return f"({self.left}) - ({self.right})"


def relations(text: str) -> list[Relation]:
    """The constraints in a text such as `x**2 + y <= 1` or `0 <= x <= y`. Raises ProgramSyntaxError for a text without
    any."""
    parts, signs = [], []
    begin = 0
    for place, sign in _signs(text):
        if sign in ("<", ">", "!="):
            raise ProgramSyntaxError(
                f"a constraint has no '{sign}'",
                hint="write <= or >=, or = for an equation",
                span=Span(place, place + len(sign)),
                source=text,
            )
        parts.append(text[begin:place].strip())
        signs.append(sign)
        begin = place + len(sign)
    parts.append(text[begin:].strip())
    if not signs or not all(parts):
        raise ProgramSyntaxError(
            "a constraint compares two expressions",
            hint="as in 'x**2 + y <= 1', also with >= and =",
            span=Span(0, len(text)),
            source=text,
        )
    found = []
    for left, sign, right in zip(parts, signs, parts[1:]):
        whole = " ".join(text.split()) if len(signs) == 1 else f"{left} {sign} {right}"
        first, second = (right, left) if sign == ">=" else (left, right)
        found.append(Relation(whole, first, second, sign in ("=", "==")))
    return found


def _signs(text: str) -> Iterator[tuple[int, str]]:
    """The comparison operators outside all brackets, with their positions."""
    end = 0
    for place in outside_brackets(text, 0, len(text)):
        found = _RELATION.match(text, place) if place >= end else None
        if found is not None:
            end = found.end()
            yield place, found[0]


class _Constraint:
    def __init__(self, relation: Relation, compile: Compile) -> None:
        self.relation = relation
        # The sides are compiled separately, so that error messages quote them as they were written.
        self.sides = [compile(side) for side in (relation.left, relation.right)]
        self.program = compile(relation.residual)
        self.weights = "weight"
        while self.weights in self.program.inputs:
            self.weights += "_"
        self.weighted = compile(f"sum({self.weights} * ({relation.residual}))")


class Constraints:
    """All constraints together. Their residuals `[m]` must be 0 where `is_equation`, and at most 0 elsewhere."""

    def __init__(
        self, given: Sequence[Relation], packing: Packing, constants: Mapping[str, Any], compile: Compile
    ) -> None:
        self._all = [_Constraint(relation, compile) for relation in given]
        self.packing, self.constants = packing, constants
        self.labels: list[str] = []
        self.is_equation: Any = arrays.numpy_namespace().zeros(0, "bool")
        self._sizes: list[int] = []

    @property
    def inputs(self) -> list[str]:
        """The names that the constraints read."""
        return [*dict.fromkeys(name for each in self._all for name in each.program.inputs)]

    def begin(self, x: Any) -> Any:
        """The residuals `[m]` at the start, which also set the number of constraints. Raises what evaluating them
        raises, and EvaluationError where one has no value."""
        np = arrays.numpy_namespace()
        found = [np.asarray(each.program(**self._values(x, each))) for each in self._all]
        for each, value in zip(self._all, found):
            if np.isnan(value).any():
                raise self._without_value(x, each)
        self._sizes = [value.size for value in found]
        self.is_equation = np.repeat(np.array([each.relation.is_equation for each in self._all], "bool"), self._sizes)
        self.labels = [
            f"{each.relation.text} {list(key)}" if value.shape else each.relation.text
            for each, value in zip(self._all, found)
            for key in np.ndindex(*value.shape)
        ]
        return np.concatenate([value.ravel() for value in found]) if found else np.zeros(0)

    @property
    def relations(self) -> list[Relation]:
        """The constraints as they are written."""
        return [each.relation for each in self._all]

    def __len__(self) -> int:
        return len(self.labels)

    def residuals(self, x: Any) -> Any:
        """The residuals `[m]` at a point; nan where they have no value."""
        np = arrays.numpy_namespace()
        parts = [np.zeros(0)]
        for each, size in zip(self._all, self._sizes):
            try:
                parts.append(np.ravel(each.program(**self._values(x, each))))
            except LimitError:
                raise
            except EvaluationError:
                parts.append(np.full(size, np.nan))
        return np.concatenate(parts)

    def residuals_at(self, points: Any) -> Any:
        """The residuals `[k, m]` at points `[k, n]`; nan where they have no value."""
        np = arrays.numpy_namespace()
        named = self.packing.rows_named(points)
        parts = []
        for each in self._all:
            names = [name for name in each.program.inputs if name in named]
            try:
                found, _ = each.program.value_and_grad(self._given(named, each), (), rows=names)
            except LimitError:
                raise
            except GradcliError:
                return np.stack([self.residuals(x) for x in points])
            parts.append(np.reshape(np.asarray(found, dtype=float), (len(points), -1)))
        return np.concatenate(parts, axis=1)

    def jacobian(self, x: Any, packing: Packing | None = None) -> Any:
        """The derivatives `[m, n]` of the residuals by the variables, or by the constants of another packing; nan where
        there are none."""
        np = arrays.numpy_namespace()
        packing = packing or self.packing
        places = packing.places()
        rows = [np.zeros((0, packing.size))]
        for each, size in zip(self._all, self._sizes):
            values = self._values(x, each)
            part = np.zeros((size, packing.size))
            try:
                derivatives = each.program.jacobian(values, [n for n in packing.shapes if n in values])
            except LimitError:
                raise
            except EvaluationError:
                part[:] = np.nan
                derivatives = {}
            for name, found in derivatives.items():
                if found is not None:
                    place = places[name]
                    part[:, place] = np.reshape(found, (size, place.stop - place.start))
            rows.append(part)
        return np.concatenate(rows)

    def hessian(self, x: Any, weights: Any, packing: Packing | None = None) -> Any:
        """The second derivatives `[n, n]` of the residuals, summed with `weights` `[m]`; nan where there are none."""
        np = arrays.numpy_namespace()
        packing = packing or self.packing
        total = np.zeros((packing.size, packing.size))
        first = 0
        for each, size in zip(self._all, self._sizes):
            own, first = weights[first : first + size], first + size
            if not own.any():
                continue
            values = self._values(x, each)
            names = [name for name in packing.shapes if name in values]
            try:
                shape = np.shape(each.program(**values))
                values[each.weights] = own.reshape(shape) if shape else float(own[0])
                total += matrix(packing, each.weighted.hessian(values, names))
            except LimitError:
                raise
            except EvaluationError:
                total[:] = np.nan
        return total

    def violation(self, residuals: Any) -> Any:
        """By how much each residual `[m]` violates its constraint."""
        np = arrays.numpy_namespace()
        return np.where(self.is_equation, abs(residuals), np.maximum(residuals, 0.0))

    def _without_value(self, x: Any, each: _Constraint) -> EvaluationError:
        values = self._values(x, each)
        for side in each.sides:
            given = {n: arrays.asarray(v, "float64") for n, v in values.items() if n in side.inputs}
            told = session.run(session.EvaluationRequest(side.program, given, gradient=False)).warnings
            found = next((w for w in told if w.code == "nonfinite"), None)
            if found is not None:
                break
        return EvaluationError(
            f"the constraint '{each.relation.text}' has no value at the start"
            + (f": {found.message}" if found else ""),
            hint="start where it has one",
            span=found and found.span,
            source=side.program.source if found else None,
        )

    def _values(self, x: Any, each: _Constraint) -> dict[str, Any]:
        return self._given(self.packing.named(x), each)

    def _given(self, named: Mapping[str, Any], each: _Constraint) -> dict[str, Any]:
        known = {**self.constants, **named}
        return {name: known[name] for name in each.program.inputs if name in known}
