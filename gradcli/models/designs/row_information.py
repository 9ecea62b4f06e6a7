"""The information of one row about the parameters: the exact gradient of the model, in units of the deviation of the
response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import GradcliError, ShapeError
from gradcli.language.syntax.tree import Module
from gradcli.models.value_checks import nonfinite_error, real_value
from gradcli.rows.row_programs import RowProgram
from gradcli.rows.row_results import RowResults

# Families whose variance is a function of the mean: the variance, and its derivative.
VARIANCES: dict[str, tuple[Any, Any]] = {
    "gaussian": (np.ones_like, np.zeros_like),
    "poisson": (lambda mean: mean, np.ones_like),
    "binomial": (lambda mean: mean * (1 - mean), lambda mean: 1 - 2 * mean),
}


class RowInformation:
    """The information gᵀg of a row at any point of the region, g `[p]` being the gradient of the model by the
    parameters, divided by the standard deviation of the response.

    `names` are those of the d inputs. `deviation` is a program of the inputs, whose value is a factor of the standard
    deviation, and `values` has the values of the parameters and of what is known.
    """

    def __init__(
        self,
        model: Module,
        names: Sequence[str],
        parameters: Sequence[str],
        values: Mapping[str, float],
        family: str,
        deviation: Module,
        most: tuple[int, int],
    ) -> None:
        self._model, self._names, self._parameters, self._values = model, tuple(names), tuple(parameters), values
        self._variance = VARIANCES[family]

        def program(module: Module, wrt: Sequence[str], order: int) -> RowProgram:
            return RowProgram(module, wrt, order, max_steps=most[0], max_elements=most[1])

        self._first = program(model, self._parameters, 1)
        self._second = program(model, (*self._parameters, *self._names), 2)
        self._deviation = program(deviation, self._names, 1)

    def gradients(self, points: Any) -> Any:
        """The gradients g `[n, p]` at points `[n, d]`, nan where there is none."""
        found = self._run(self._first, points)
        mean = self._mean(found, len(points))
        scale, _ = self._scales(points, mean, None)
        with np.errstate(all="ignore"):
            return _stacked(found, self._parameters, len(points)) / scale[:, None]

    def gradients_and_slopes(self, points: Any) -> tuple[Any, Any]:
        """The gradients g `[n, p]` at points `[n, d]`, and their derivatives by the inputs, `[n, p, d]`."""
        count, p, d = len(points), len(self._parameters), len(self._names)
        found = self._run(self._second, points)
        mean = self._mean(found, count)
        scale, slope_of_scale = self._scales(points, mean, _stacked(found, self._names, count))
        gradient = _stacked(found, self._parameters, count)
        keys = [f"{parameter},{name}" for parameter in self._parameters for name in self._names]
        mixed = _stacked(found, keys, count).reshape(count, p, d)
        with np.errstate(all="ignore"):
            scaled = gradient / scale[:, None]
            return scaled, (mixed - scaled[:, :, None] * slope_of_scale[:, None, :]) / scale[:, None, None]

    def curved_parameters(self, points: Any) -> set[str]:
        """The parameters on whose value the gradients at some of the points depend."""
        if self._variance is not VARIANCES["gaussian"]:
            return {*self._parameters}
        found = self._run(self._second, points)
        pairs = {key: key.split(",") for key in found.derivatives if "," in key and np.any(found.derivative(key))}
        return {name for names in pairs.values() if {*names} <= {*self._parameters} for name in names}

    def failure(self, point: Any) -> GradcliError:
        """The error that there is no finite gradient at a point `[d]`."""
        found = self._run(self._first, point[None])
        if found.failures:
            return found.failures[0].error
        row = dict(zip(self._names, point.tolist()))
        where = ", ".join(f"{name} = {value:.15g}" for name, value in row.items())
        return nonfinite_error(
            self._model,
            {**self._values, **row},
            self._parameters,
            f"there is no finite information at {where}",
        )

    def _run(self, program: RowProgram, points: Any) -> RowResults:
        read = {name: points[:, place] for place, name in enumerate(self._names)}
        return program.run(read, self._values, rows=len(points))

    def _mean(self, found: RowResults, count: int) -> Any:
        mean = real_value(_one_shape(found.value, self._model), "a design")
        if mean.shape not in ((), (count,)):
            raise _not_a_number("the model", mean.shape[1:], self._model)
        return np.broadcast_to(mean, count)

    def _scales(self, points: Any, mean: Any, slopes: Any) -> tuple[Any, Any]:
        """The standard deviations `[n]` of the response, nan where they are not positive, and with the `slopes`
        `[n, d]` of the mean their derivatives by the inputs."""
        count = len(points)
        found = self._run(self._deviation, points)
        factor = real_value(_one_shape(found.value, self._deviation.program), "a standard deviation")
        if factor.shape not in ((), (count,)):
            raise _not_a_number("the standard deviation", factor.shape[1:], self._deviation.program)
        variance, slope_of_variance = self._variance
        with np.errstate(all="ignore"):
            root = np.sqrt(variance(mean))
            scale = np.where(factor > 0, factor * root, np.nan)
            scale = np.where(scale > 0, scale, np.nan)
            if slopes is None:
                return scale, None
            of_factor = _stacked(found, self._names, count)
            by_mean = factor * slope_of_variance(mean) / (2 * root)
            return scale, of_factor * root[:, None] + by_mean[:, None] * slopes


def _stacked(found: RowResults, keys: Sequence[str], rows: int) -> Any:
    """The derivatives by their keys, `[rows, k]`; 0 in rows that do not depend on what is differentiated by."""
    stacked = np.zeros((rows, len(keys)))
    for place, key in enumerate(keys):
        stacked[:, place] = found.derivative(key)
    return stacked


def _one_shape(value: Any, module: Any) -> Any:
    if getattr(getattr(value, "dtype", None), "kind", "") == "O":
        raise ShapeError("the model has other shapes at other points", span=module.body[-1].span, source=module.source)
    return value


def _not_a_number(what: str, shape: tuple[int, ...], module: Any) -> ShapeError:
    return ShapeError(
        f"{what} has the shape {list(shape)}, and is one number for a row",
        span=module.body[-1].span,
        source=module.source,
    )
