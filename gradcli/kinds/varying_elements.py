"""Which elements of a Taylor series vary, by what they are computed from.

The derivatives of the others are 0, and an operand's element that does not vary is a constant, even where a rule
computes 0 times infinity. Elements that are constant by chance are not detected.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import logical_and, logical_not, logical_or, not_equal, where
from gradcli.primitives.entries.reductions import any_
from gradcli.primitives.entries.scans import sort
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.primitive import Primitive

# The class Jet; `gradcli.kinds.jets` imports this module.
Series = Any


def everywhere(shape: tuple[int, ...], like: Any) -> Any:
    """A mask of `shape` in which all elements vary, in the namespace of `like`."""
    return arrays.beside(arrays.numpy_namespace().ones(shape, bool), like) if shape else True


def varying(result: Series, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The mask of the varying elements of a result, from those of its series operands."""
    series = type(result)
    if not result.degree:
        # For example floor, which is locally constant.
        return broadcast_to(False, result.shape)
    varied = [_varies(operands[i]) for i in _series_among(series, primitive, operands)]
    product = primitive.multilinear or primitive is multiply
    if product or primitive.selects or primitive.jet is linear or primitive is sort:
        # The derivative of a result whose varying operands have derivative 1 is a sum of ones over what varies.
        mark = _marked_factor if product else _marked
        made = series._applied(primitive, [mark(series, o) for o in operands], params)
        slope = made.coefficient(1) if isinstance(made, series) else None
        found = broadcast_to(False, result.shape) if slope is None else not_equal(slope, 0)
        # 0 times an inf or nan factor is not 0.
        return logical_and(found, functools.reduce(logical_or, varied)) if primitive.elementwise else found
    if primitive.reduces is not None:
        return any_(*varied, **params)
    if not primitive.elementwise:
        varied = [any_(v) for v in varied]
    return broadcast_to(functools.reduce(logical_or, varied), result.shape)


def with_constants(
    result: Series, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
) -> Iterator[tuple[Any, Series]]:
    """Pairs of a mask, where some operands of an elementwise primitive vary and others do not, and the result with the
    latter as constants."""
    series = type(result)
    among = _series_among(series, primitive, operands)
    for count in range(1, len(among)):
        for fixed in itertools.combinations(among, count):
            there = functools.reduce(
                logical_and,
                [logical_not(_varies(operands[i])) if i in fixed else _varies(operands[i]) for i in among],
            )
            if isinstance(there, Kind) or not arrays.every(logical_not(there)):
                given = [o.inner if i in fixed else o for i, o in enumerate(operands)]
                yield there, series.read(primitive, given, params)


def _series_among(series: type[Series], primitive: Primitive, operands: Sequence[Any]) -> list[int]:
    mask = primitive.differentiable(len(operands))
    return [i for i, o in enumerate(operands) if isinstance(o, series) and mask >> i & 1]


def _varies(series: Series) -> Any:
    return True if series.varies is None else series.varies


def _marked(series: type[Series], operand: Any) -> Any:
    """The operand as a series with derivative 1 where it varies, else 0."""
    return series([operand.inner, where(_varies(operand), 1.0, 0.0)], 1) if isinstance(operand, series) else operand


def _marked_factor(series: type[Series], operand: Any) -> Any:
    """A factor as 1 where it varies, with derivative 1, or is a constant other than 0; else as 0, which makes the
    product constant."""
    if not isinstance(operand, series):
        return where(not_equal(operand, 0), 1.0, 0.0)
    varies = _varies(operand)
    if not isinstance(varies, Kind) and arrays.every(varies):
        counts = varies
    else:
        counts = logical_or(varies, not_equal(operand.inner, 0))
    return series([where(counts, 1.0, 0.0), where(varies, 1.0, 0.0)], 1)
