"""A scalar program as an objective: a function of one vector with its exact gradient and Hessian."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradcli import arrays, limits
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import EvaluationError, GradcliError, LimitError, NotRecordableError
from gradcli.evaluation.hessians import HessianProducts
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.models.packing import Packing
from gradcli.models.perturbed_runs import run_twice

# Upper bound of the variables for a dense Hessian.
MOST_DENSE = 1_000
# Up to this number of variables, the sparsity of the Hessian is not examined.
_FEW = 200
# The largest share of nonzero elements of a Hessian that is treated as sparse.
_SPARSE = 0.1
# Steps, in units of 1/8, that are charged for each evaluation beyond those of the program.
_EVALUATION = 40


class Objective:
    """The value of `program` as a function of the names in `packing`, with `constants` for its other inputs; negated
    where `sign` is -1, so that it is always minimised.

    The objective is infinite where the program has no finite value.
    """

    def __init__(
        self,
        program: CompiledProgram,
        packing: Packing,
        constants: Mapping[str, Any],
        sign: float = 1.0,
    ) -> None:
        self.program, self.packing, self.constants, self.sign = program, packing, constants, sign
        known = scope.free_names(program.program)
        # The packing may also have names that only constraints read.
        self.names = [name for name in packing.shapes if name in known]
        self.evaluations = 0
        # The largest component of the first gradient, and the first value: the scales by which others count as small.
        self.steepest, self.first = math.inf, 0.0
        self._products = HessianProducts(program.program, self.names)
        self._is_sparse: bool | None = None if packing.size > _FEW else False

    def values(self, x: Any) -> dict[str, Any]:
        """The inputs of the program at the vector `x`."""
        named = self.packing.named(x)
        return {**{name: named[name] for name in self.names}, **self.constants}

    def value_and_gradient(self, x: Any, constants: Mapping[str, Any] | None = None) -> tuple[float, Any]:
        """The value and the gradient `[n]`, optionally with other constants; infinite and nan where there is none.
        Raises the errors of the program that do not depend on the point."""
        self.evaluations += 1
        limits.charge_steps(_EVALUATION)
        values = {**self.values(x), **(constants or {})}
        try:
            value, found = self.program.value_and_grad(values, self.names)
        except LimitError:
            raise
        except EvaluationError:
            return math.inf, arrays.numpy_namespace().full(len(x), math.nan)
        gradient = self._flat(found)
        value = self.sign * float(value)
        if value > -math.inf and not (math.isfinite(value) and arrays.numpy_namespace().isfinite(gradient).all()):
            return math.inf, gradient
        if self.steepest == math.inf:
            self.steepest, self.first = float(abs(gradient).max(initial=0.0)), abs(value)
        return value, self.sign * gradient

    def value(self, x: Any) -> float:
        """The value, also where the gradient is infinite; infinite where there is none."""
        self.evaluations += 1
        limits.charge_steps(_EVALUATION)
        try:
            found = self.sign * float(self.program(**self.values(x)))
        except LimitError:
            raise
        except EvaluationError:
            return math.inf
        return math.inf if math.isnan(found) else found

    def rounding_error(self, x: Any) -> float:
        """A rounding-error estimate of the value: its difference from a second run with perturbed rounding; 0 where
        that is not known."""
        self.evaluations += 1
        limits.charge_steps(_EVALUATION)
        named = self.packing.named(x)
        found = run_twice(
            lambda given: evaluate(self.program.program, {**self.constants, **given}).value,
            {name: named[name] for name in self.names},
        )
        error = 0.0 if found is None else abs(float(found[0]) - float(found[1]))
        return error if math.isfinite(error) else 0.0

    def values_at(self, points: Any) -> Any:
        """The values `[k]` at points `[k, n]`, infinite where there are none."""
        np = arrays.numpy_namespace()
        named = self.packing.rows_named(points)
        try:
            given = {**{name: named[name] for name in self.names}, **self.constants}
            found, _ = self.program.value_and_grad(given, (), rows=self.names)
        except LimitError:
            raise
        except GradcliError:
            # At some point there is no value, so that each is evaluated on its own.
            return np.asarray([self.value(x) for x in points])
        self.evaluations += len(points)
        limits.charge_steps(_EVALUATION)
        found = self.sign * np.asarray(found, dtype=float)
        return np.where(np.isnan(found), math.inf, found)

    def hessian(self, x: Any) -> Any:
        """The Hessian: an array `[n, n]`, or a sparse matrix of SciPy where most elements are 0. None where it is too
        large, does not exist or is not finite."""
        found = self._known_hessian(x)
        return None if found is None or not _is_finite(found) else self.sign * found

    def hessian_of(self, x: Any, free: Any) -> Any:
        """The Hessian `[n, n]` with zeros for variables that are not `free`, even where those elements are not finite.
        None as for `hessian`, and where it is sparse."""
        np = arrays.numpy_namespace()
        found = self._known_hessian(x)
        if found is None or not isinstance(found, np.ndarray):
            return None
        part = np.where(np.outer(free, free), found, 0.0)
        return self.sign * part if np.isfinite(part).all() else None

    def _known_hessian(self, x: Any) -> Any:
        try:
            return self._hessian(self.values(x))
        except (EvaluationError, NotImplementedError):
            return None

    def _hessian(self, values: Mapping[str, Any]) -> Any:
        if self._is_sparse is None or self._is_sparse:
            found = self._sparse(values)
            if self._is_sparse is None:
                # With many variables and a dense Hessian, no matrix is computed at all.
                self._is_sparse = found is not None and found.nnz <= _SPARSE * self.packing.size**2
            if self._is_sparse:
                return found
        if self.packing.size > MOST_DENSE:
            return None
        return matrix(self.packing, self.program.hessian(values, self.names))

    def _sparse(self, values: Mapping[str, Any]) -> Any:
        from scipy.sparse import csc_array

        try:
            with limits.optional_budget():
                blocks = self.program.hessian(values, self.names, sparse=True)
        except (LimitError, NotRecordableError):
            return None
        np, places = arrays.numpy_namespace(), self.packing.places()
        rows, columns, entries = [], [], []
        for key, block in blocks.items():
            if block is None:
                continue
            one, other = key.split(",")
            row, column = block.row + places[one].start, block.column + places[other].start
            rows.append(row)
            columns.append(column)
            entries.append(block.value)
            if one != other:
                rows.append(column)
                columns.append(row)
                entries.append(block.value)
        size = self.packing.size
        if not entries:
            return csc_array((size, size))
        return csc_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), (size, size))

    def hessian_product(self, x: Any, direction: Any) -> Any:
        """The Hessian times a vector `[n]`. Raises NotRecordableError where the program cannot be recorded."""
        found = self._products.along(self._arrays(x), self.packing.named(direction))
        return self.sign * self._flat(found)

    def has_products(self, x: Any) -> bool:
        """Return whether Hessian-vector products can be computed."""
        try:
            self.hessian_product(x, arrays.ones_like(x))
        except (GradcliError, NotImplementedError):
            return False
        return True

    def _flat(self, found: Mapping[str, Any]) -> Any:
        return self.packing.flat({name: found.get(name) for name in self.packing.shapes})

    def _arrays(self, x: Any) -> dict[str, Any]:
        return {name: arrays.asarray(value, "float64") for name, value in self.values(x).items()}


def matrix(packing: Packing, second: Mapping[str, Any]) -> Any:
    """One symmetric matrix from blocks of second derivatives keyed as `"x,q"`; blocks that are None become zeros."""
    np = arrays.numpy_namespace()
    found, places = np.zeros((packing.size, packing.size)), packing.places()
    for key, block in second.items():
        if block is None:
            continue
        one, other = (places[name] for name in key.split(","))
        found[one, other] = np.reshape(block, (one.stop - one.start, other.stop - other.start))
        found[other, one] = found[one, other].T
    return found


def _is_finite(found: Any) -> bool:
    return bool(arrays.numpy_namespace().isfinite(found.data if is_sparse(found) else found).all())


def is_sparse(hessian: Any) -> bool:
    """Return whether a matrix is a sparse one of SciPy."""
    return hasattr(hessian, "nnz")
