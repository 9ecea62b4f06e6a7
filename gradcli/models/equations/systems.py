"""A system of equations as a function of the vector of its unknowns: residuals and exact Jacobian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import EvaluationError, GradcliError, LimitError, Span, UsageError
from gradcli.evaluation import session
from gradcli.kinds.jets import Jet
from gradcli.language.equations import Equations
from gradcli.language.interpreter.run import evaluate
from gradcli.models.packing import Packing
from gradcli.primitives.bind import concrete

# Smaller derivatives may be due to underflow.
_LOST = 1e-290


class System:
    """Equations for unknowns of given shapes, with the values of all other names."""

    def __init__(self, equations: Equations, unknowns: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self.equations = equations
        self.packing = Packing.of(unknowns)
        self.constants = dict(constants)
        self.program = CompiledProgram(equations.program)

    @property
    def is_of_one_number(self) -> bool:
        """Whether the only unknown is a real number."""
        return self.packing.size == 1 and [*self.packing.shapes.values()] == [()]

    def check_count(self, point: Any) -> Any:
        """The residuals at a point. Raises UsageError unless there are as many equations as unknowns."""
        residual = self.flat_residual(self.program(**self.values(point)))
        count, size = len(residual), self.packing.size
        program = self.equations.program
        if count != size:
            raise UsageError(
                f"there {_are(count, 'equation')} for {size} unknown{'s' * (size != 1)}",
                hint="there must be as many; gradcli minimize takes a sum of squares of more",
                span=Span(0, len(program.source)),
                source=program.source,
            )
        return residual

    def check(self, point: Any) -> None:
        """Raise EvaluationError, with its place in the source, where the residuals at a point are not finite, and what
        `check_count` raises."""
        residual, program = self.check_count(point), self.equations.program
        xp = arrays.numpy_namespace()
        if not xp.all(xp.isfinite(residual)):
            request = session.EvaluationRequest(program, self.values(point), gradient=False, executor="eager")
            found = [w for w in session.run(request).warnings if w.code == "nonfinite"]
            raise EvaluationError(
                "the equations have no value at the start" + (f": {found[0].message}" if found else ""),
                hint="give another start, as in x~0.5",
                span=found[0].span if found else self.equations.places[0],
                source=program.source,
            )

    def values(self, point: Any) -> dict[str, Any]:
        """The values of all names, with the unknowns taken from a vector."""
        return {**self.constants, **self.packing.named(point)}

    def flat_residual(self, value: Any) -> Any:
        """The differences of the sides as a real vector."""
        if arrays.is_complex(value):
            raise UsageError(
                "the equations are complex, and their unknowns real", hint="give a complex start, as in z~1+1j"
            )
        return arrays.numpy_namespace().asarray(value, dtype=float)

    def residual(self, point: Any) -> Any:
        """The differences `[n]` of the sides; nan where they have no value."""
        xp = arrays.numpy_namespace()
        try:
            return self.flat_residual(self.program(**self.values(point)))
        except LimitError:
            raise
        except EvaluationError:
            return xp.full(self.packing.size, xp.nan)

    def jacobian(self, point: Any) -> Any:
        """The derivatives `[n, n]` of the residuals by the unknowns; nan where there are none."""
        xp = arrays.numpy_namespace()
        size = self.packing.size
        try:
            found = self.program.jacobian(self.values(point), [*self.packing.shapes])
        except LimitError:
            raise
        except EvaluationError:
            return xp.full((size, size), xp.nan)
        matrix = xp.zeros((size, size))
        for name, place in self.packing.places().items():
            if found[name] is not None:
                matrix[:, place] = xp.reshape(found[name], (size, -1))
        return matrix

    def scaled_jacobian(self, point: Any, sizes: Any) -> Any:
        """The Jacobian `[n, n]` times the `sizes` `[n]` of the unknowns. These products are also found where the
        derivatives themselves overflow or underflow."""
        xp = arrays.numpy_namespace()
        found = self.jacobian(point)
        if not self.is_lost(found):
            return found * sizes
        return xp.stack([self._along(point, size * unit) for size, unit in zip(sizes, xp.eye(len(point)))], axis=1)

    @staticmethod
    def is_lost(jacobian: Any) -> bool:
        """Whether the derivatives of an equation, or those by an unknown, may be wrong because they overflow or
        underflow."""
        xp = arrays.numpy_namespace()
        small = xp.abs(jacobian) < _LOST
        return bool((small.all(axis=0) | small.all(axis=1)).any() or not xp.isfinite(jacobian).all())

    def _along(self, point: Any, step: Any) -> Any:
        """The directional derivative `[n]` of the residuals along a step `[n]`; nan where they have no value."""
        xp = arrays.numpy_namespace()
        steps = self.packing.named(step)
        try:
            value = self.function({name: Jet([x, steps[name]], 1) for name, x in self.packing.named(point).items()})
        except LimitError:
            raise
        except GradcliError:
            return xp.full(len(point), xp.nan)
        change = value.coefficient(1) if isinstance(value, Jet) else None
        return xp.zeros(len(point)) if change is None else self.flat_residual(concrete(change))

    def function(self, given: Mapping[str, Any]) -> Any:
        """The residuals for values of any kind, such as jets and balls."""
        others = {name: value for name, value in self.constants.items() if name not in given}
        return evaluate(self.equations.program, {**others, **given}).value

    def depends(self, point: Any, names: Sequence[str]) -> list[str]:
        """Those of the constants `names` on which the residuals depend."""
        found = self.program.jacobian(self.values(point), list(names))
        return [name for name in names if found[name] is not None]


def _are(count: int, what: str) -> str:
    return f"is 1 {what}" if count == 1 else f"are {count} {what}s"
