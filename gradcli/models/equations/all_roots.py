"""`solve --all --prove`: all roots in a box of several unknowns, with the boxes that may contain more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, NotRecordableError
from gradcli.models.equations.systems import System
from gradcli.models.results import Iteration, ProgressCallback

# Upper bound of the boxes that a result lists.
_MOST_TOLD = 100
# The largest denominator of the fractions that are tried as exact roots at the ends of a range.
_MAX_DENOMINATOR = 1_000

# The lower and the upper end by name.
Box = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class RootsProof:
    """Whether all roots in the box are `complete`ly listed, the boxes that may contain more (`left`), how many of these
    are not listed (`unlisted`), and how many boxes were looked at."""

    complete: bool
    left: list[Box]
    unlisted: int
    boxes: int


class ProvedRoots(NamedTuple):
    """Points `[n]` with the boxes around them in which each is the only root, the proof, and the message."""

    points: Sequence[Any]
    boxes: Sequence[Box]
    proof: RootsProof
    message: str


def all_roots(system: System, ranges: Mapping[str, tuple[float, float]], watch: ProgressCallback) -> ProvedRoots:
    """Every root of a system in the box of the ranges, within half of the limits of the run.

    Raises EvaluationError where control flow depends on the unknowns.
    """
    # python-flint is needed only where something is to be proved.
    from gradcli.proofs.box_programs import BoxProgram
    from gradcli.proofs.root_isolation import RootIsolation

    np = arrays.numpy_namespace()
    low, high = (np.array([ranges[name][k] for name in system.packing.shapes], float) for k in range(2))
    program = system.equations.program
    # A point in which the box has no symmetry, where derivatives may vanish.
    example = low + 0.41 * (high - low)
    try:
        boxed = BoxProgram(program, system.packing.shapes, system.constants, example)
    except NotRecordableError as error:
        raise EvaluationError(
            "a proof needs the same operations in the whole box, and here they depend on the unknowns",
            hint="write where(condition, a, b) for an if",
            span=error.span,
            source=program.source,
        ) from None
    with limits.optional_budget():
        found = RootIsolation(boxed, low, high).run(lambda boxes, roots: watch(Iteration(boxes, float(roots))))
    points, boxes, open_ = [], [], 0
    for least, most in sorted(found.roots, key=lambda box: tuple(box[0])):
        where = _place(system, least, most, low, high)
        if where == "outside":
            continue
        open_ += where == "open"
        points.append(np.clip(0.5 * least + 0.5 * most, low, high))
        boxes.append(_named(system, least, most))
    left = [_named(system, *box) for box in found.left[:_MOST_TOLD]]
    proof = RootsProof(not found.left and not open_, left, len(found.left) - len(left), found.boxes)
    return ProvedRoots(points, boxes, proof, _message(len(points), open_, len(found.left), found.ended))


def _place(system: System, least: Any, most: Any, low: Any, high: Any) -> str:
    """Whether the only root in a box lies inside of the ranges, outside, or is open."""
    if ((low <= least) & (most <= high)).all():
        return "inside"
    exact = _exact_root(system, least, most)
    if exact is None:
        return "open"
    # The end 0.1 is a float above 1/10, and this root is in the range: the roots are rounded like the ends.
    return "inside" if all(a <= float(x) <= b for x, a, b in zip(exact, low, high)) else "outside"


def _exact_root(system: System, least: Any, most: Any) -> list[Fraction] | None:
    """The root in a box as simple fractions, where these solve the equations exactly; else None."""
    from flint import fmpq

    from gradcli.arrays.flint.balls import Balls, exact
    from gradcli.proofs import digits as proving

    simple = [Fraction(float(0.5 * a + 0.5 * b)).limit_denominator(_MAX_DENOMINATOR) for a, b in zip(least, most)]
    if not all(Fraction(float(a)) <= x <= Fraction(float(b)) for x, a, b in zip(simple, least, most)):
        return None
    with proving.computing():
        named = {name: Balls(fmpq(x.numerator, x.denominator)) for name, x in zip(system.packing.shapes, simple)}
        try:
            value = system.function(named)
        except EvaluationError:
            return None
        numbers = value.numbers.ravel() if isinstance(value, Balls) else [exact(value)]
        return simple if all(type(x) is fmpq and x == 0 for x in numbers) else None


def _named(system: System, least: Any, most: Any) -> Box:
    """A box by name, whose ends are decimals outside of it."""
    names = system.packing.labels()
    return {
        name: (_outward(float(a), -math.inf), _outward(float(b), math.inf)) for name, a, b in zip(names, least, most)
    }


def _outward(end: float, side: float) -> float:
    return end if end.is_integer() else math.nextafter(end, side)


def _message(roots: int, open_: int, left: int, ended: str | None) -> str:
    count = f"{roots:,} root{'s' * (roots != 1)}" if roots else "no root"
    if not left and not open_:
        return (
            f"{count}, which {'are' if roots > 1 else 'is'} proved to be all in the box"
            if roots
            else ("no root in the box, which is proved")
        )
    parts = [f"{count} that {'are' if roots > 1 else 'is'} proved" if roots else "no root that is proved"]
    if open_:
        parts.append(f"of which {open_:,} at an end of a range may lie outside")
    if left:
        parts.append(f"and {left:,} box{'es' * (left != 1)} that may contain more")
    return ", ".join(parts) + (f" ({ended})" if ended else "")
