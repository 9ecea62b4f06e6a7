"""Whether a way to the numbers of a program differs from reverse mode by more than what floats lose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.autograd import tensor as autograd_tensor
from gradcli.calculus.higher_orders import derivatives_with_shadow
from gradcli.errors import EvaluationError, GradcliError, LimitError, NotRecordableError
from gradcli.primitives import bind, table
from gradcli.primitives.entries.arithmetic import copysign
from gradcli.primitives.entries.linear_algebra import decompositions
from gradcli.primitives.primitive import Primitive
from tests.fuzz import checks
from tests.fuzz.case import Finding
from tests.fuzz.readings import VALUE, Numbers, Point, Reading, as_numbers, limited, twice_by_reverse_mode

# Relative to the largest number of an array; what is worse is looked at again, with the condition of the program.
_ALIKE = 1e-10
_SMALL, _ALIKE_SMALL = 1e-150, 1e-3
# Below the one, factors may be 0 for having no digits left; beyond the other, parts may be infinite.
_UNDERFLOW, _OVERFLOW = 1e-155, 1e300
# 16 units in the last place.
_NOISE = 16 * 2.0**-52
# What gives vectors, which turn without limit where two eigenvalues are equal.
_VECTORS = re.compile(r"\b(eigh|svd)\b")
# A number beyond 1e100, or its inverse.
_FAR_OUT = re.compile(r"[eE][+-]?\d{3}")
_NUMBER = re.compile(r"(?:\d[\d_]*\.?\d*|\.\d+)[eE]-\d+")
# So many times what the numbers change where the inputs change a little may be rounding.
_ROUNDING = 100.0
_LITTLE = 3e-14
# How much less the numbers with a wider range round.
_FINER = float(np.finfo(np.longdouble).eps) / 2.0**-52
# What is found by iterations.
_ITERATED = frozenset({"eigh", "eigvalsh", "svd", "svdvals", "pinv"})
# Rounding may be so many times as much elsewhere.
_FEW = 16.0
# A program is compiled when it runs for the second time, or for the third.
_RUNS = 3


class Way(NamedTuple):
    """A way to the numbers of a program, beside reverse mode."""

    name: str
    reading: Reading
    # It may know that a derivative is 0 where reverse mode has 0 times infinity, as a series does, and the rows of a
    # Jacobian, which leave out what they do not ask for.
    knows_zeros: bool = False
    # It applies rules to arrays of any precision, so that wider numbers tell a wrong rule from a lack of range.
    widens: bool = False
    # It may differ by what it changes by itself where the inputs change a little: the cosine of pi*x, which the
    # derivative of sinc(x) has in formulas, says nothing of a large x, nor do the rows of a Jacobian that are far larger
    # than their sum.
    own_rounding: bool = False
    # Hand-written clauses for backward need not be linear, nor good for every cotangent.
    by_rows: bool = False


class Comparison:
    """Ways to the numbers of a program, against those of reverse mode, `truth`, which are `first` at the point."""

    def __init__(self, truth: Reading, first: Numbers, point: Point) -> None:
        self.truth = truth
        self.first = first
        self.point = point
        # What differs for lack of range alone, by the names of the derivatives.
        self.excused: dict[str, list[Any]] = {}

    def finding(self, way: Way) -> Finding | None:
        """That a way differs from the truth."""
        try:
            with limited():
                found = {key: None if d is None else as_numbers(d) for key, d in way.reading(self.point).items()}
        except (LimitError, NotRecordableError) as error:
            return checks.wrong_error(error)
        except GradcliError as error:
            return checks.wrong_error(error) or Finding(f"{way.name}: an error", error.report())
        for key, numbers in found.items():
            if key in self.first and not self._agrees(way, key, numbers):
                part = "value" if key == VALUE else "a derivative"
                detail = f"{key}: {self.first[key]} by reverse mode, {numbers} by {way.name}"
                return Finding(f"{way.name}: {part} differs", detail)
        return None

    def _agrees(self, way: Way, key: str, numbers: Any) -> bool:
        first = self.first[key]
        # There, what 0 times infinity is in a derivative depends on the way.
        without_a_value = _is_odd(self.first[VALUE]) or not np.size(self.first[VALUE])
        if without_a_value and (_is_odd(first) or _is_odd(numbers)):
            return True
        if way.knows_zeros and _is_odd(first):
            return True
        if self.truth is twice_by_reverse_mode and _is_odd(numbers) and not np.any(first):
            # What was recorded behind a choice takes all zeros for those of what was not taken.
            return True
        # Where there is nothing but zeros, nobody knows of what size their parts were.
        largest = 1.0 if without_a_value else _largest(self.first.values()) or 1.0
        if _is_noise(first, numbers, largest, _NOISE):
            return True
        close = _ALIKE_SMALL if is_far_out(self.point) else _ALIKE
        return _alike(first, numbers, close) or self._is_loss(way, key, numbers)

    def _is_loss(self, way: Way, key: str, numbers: Any) -> bool:
        """Whether a difference says nothing of the rules."""
        first = self.first[key]
        if is_rounding(self.truth, key, first, numbers, self.point):
            return True
        if way.own_rounding and is_rounding(way.reading, key, numbers, first, self.point):
            return True
        if any(_alike(excused, numbers, _ALIKE) for excused in self.excused.get(key, ())):
            return True
        if _is_odd(numbers) and _has_odd_parts(self.point):
            # What 0 times infinity is in a derivative depends on the way, and what a part is of such a derivative.
            return True
        if _has_sign_of_nan(self.point):
            return True
        if key != VALUE and (_has_dependent_columns(self.point) or _has_equal_values(self.point)):
            return True
        if not (_is_odd(numbers) or _largest([numbers])) and self._vanishes(key):
            return True
        if way.widens and self._agrees_in_range(way, key, numbers):
            self.excused.setdefault(key, []).append(numbers)
            return True
        return False

    def _agrees_in_range(self, way: Way, key: str, numbers: Any) -> bool:
        """Whether way, which gave these numbers, and truth agree to all but rounding in numbers of a wider range, so that
        an overflow or underflow between is all that parts them. Less is rounding there, and more digits must agree."""
        if _FINER > 0.5:
            return False
        wide = self.point.wide()
        try:
            with _wider():
                first = self.truth(wide)
                found = [way.reading(wide).get(key) for _ in range(_RUNS)]
        except _NarrowedError as error:
            # Nobody knows what it is where it has range.
            return _is_odd(numbers) or isinstance(error, _VanishedError)
        except (GradcliError, TypeError):
            # Functions of SciPy, which printed code calls, know no wider numbers.
            return False
        largest = _largest(first.values())
        return all(_is_noise(first[key], f, largest, _NOISE * _FINER) or _alike_wide(first[key], f) for f in found)

    def _vanishes(self, key: str) -> bool:
        """Whether the truth is what rounding leaves of equal numbers: with more digits there is less of it by as much."""
        if _FINER > 0.5:
            return False
        try:
            with _wider():
                wide = self.truth(self.point.wide())[key]
        except (GradcliError, _NarrowedError):
            return False
        return not _is_odd(wide) and _largest([wide]) <= _FEW * _FINER * _largest([self.first[key]])


@contextmanager
def _wider() -> Iterator[None]:
    """Within the block, numbers with a wider range are computed with."""
    with limited(), np.errstate(all="ignore"), _narrowed_where_needed():
        yield


class _NarrowedError(Exception):
    """A number is too large for what a library has for floats alone."""


class _VanishedError(_NarrowedError):
    """A number is too small for it."""


@contextmanager
def _narrowed_where_needed() -> Iterator[None]:
    """Within the block, what a library has for floats alone is computed in them, of wider numbers too. Raises
    _NarrowedError where these are too large for it."""
    compute = bind.apply_to_arrays

    def narrowed(primitive: Primitive, operands: Sequence[Any], params: Any) -> Any:
        try:
            return compute(primitive, operands, params)
        except EvaluationError:
            narrow = [as_numbers(o).astype(np.float64) if _is_wide(o) else o for o in operands]
            if any(_is_wide(o) and _is_odd(n) and not _is_odd(o) for n, o in zip(narrow, operands)):
                raise _NarrowedError from None
            result = compute(primitive, narrow, params)
            if any(map(_has_far_out, narrow)) and not all(map(np.all, _listed(result))):
                raise _VanishedError from None
            widened = [np.asarray(r, np.longdouble) for r in _listed(result)]
            return widened if type(result) is list else widened[0]

    with _computed_by(narrowed):
        yield


@contextmanager
def _computed_by(function: Callable[[Primitive, Sequence[Any], Any], Any]) -> Iterator[None]:
    """Within the block, `function` computes what operations on arrays give. Tensors of arrays alone compute at once."""
    modules = (bind, autograd_tensor)
    compute = bind.apply_to_arrays
    for module in modules:
        module.apply_to_arrays = function  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.apply_to_arrays = compute  # type: ignore[attr-defined]


def _has_far_out(operand: Any) -> bool:
    """Whether the square of a number, or its inverse, has few digits."""
    sizes = np.abs(as_numbers(operand))
    return bool(np.any((sizes > 0) & ((sizes < _SMALL) | (sizes > 1 / _SMALL))))


def _is_wide(operand: Any) -> bool:
    return getattr(operand, "dtype", None) == np.longdouble


def _is_noise(a: Any, b: Any, largest: float, noise: float) -> bool:
    """Whether `a` is all zeros, and `b` the difference of equal numbers."""
    return not (np.any(0.0 if a is None else a) or _is_odd(b)) and _largest([b]) <= noise * largest


def _largest(all_numbers: Iterable[Any]) -> Any:
    """The largest absolute value that is finite; 0 of nothing."""
    known = (np.abs(as_numbers(n)) for n in all_numbers if n is not None)
    return max((np.max(n, initial=0.0, where=np.isfinite(n)) for n in known), default=0.0)


def _is_odd(numbers: Any) -> bool:
    return numbers is not None and not np.isfinite(numbers).all()


def is_far_out(point: Point) -> bool:
    """Whether the square of a number, or its inverse, has few digits."""
    if _FAR_OUT.search(point.program.source):
        return True
    return any(map(_has_far_out, point.leaves.values()))


def _is_subnormal(point: Point) -> bool:
    """Whether an input, or a number in the program, is so small that its inverse may be infinite."""
    written = [float(text) for text in _NUMBER.findall(point.program.source)]
    return any(np.any((np.abs(v) < 2.3e-308) & (v != 0)) for v in map(np.asarray, (*point.leaves.values(), written)))


def _alike(a: Any, b: Any, close: float) -> bool:
    """Whether two results are the same; that there is no dependence is as good as zeros."""
    if a is None or b is None:
        return not np.any(0.0 if a is None else a) and not np.any(0.0 if b is None else b)
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        # What is so small may have factors with few digits, below the smallest number that has all of them.
        close = close if scale > _SMALL else _ALIKE_SMALL
        near = np.abs(a - b) <= close * scale + _UNDERFLOW
        return bool(np.all(_same(a, b) | near | (np.isinf(b) & (np.abs(a) > _OVERFLOW))))


def _alike_wide(a: Any, b: Any) -> bool:
    """Whether two results with a wider range are the same to as many units of their last place as `_alike` has."""
    if a is None or b is None:
        return _alike(a, b, 0.0)
    a, b = as_numbers(a), as_numbers(b)
    if a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        return bool(np.all(_same(a, b) | (np.abs(a - b) <= _ALIKE * _FINER * scale)))


def _same(a: Any, b: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def is_rounding(truth: Reading, key: str, a: Any, b: Any, point: Point) -> bool:
    """Whether the difference is no more than what the truth changes by where the inputs change a little, or what it is
    computed with."""
    if a is None or b is None or np.shape(a) != np.shape(b):
        return False
    if _is_subnormal(point) and _is_odd(b):
        # The inverse of a number that small is infinite.
        return True
    if key != VALUE and _VECTORS.search(point.program.source):
        # Where two eigenvalues are equal, rounding alone says which vectors belong to them, and how they turn.
        return True
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    rng = np.random.default_rng(0)
    worst = 0.0
    for size in (_LITTLE, -_LITTLE, 30 * _LITTLE, -30 * _LITTLE, 0.0, 0.0):
        there = point.at({n: v * (1 + size * rng.uniform(0.5, 1, np.shape(v))) for n, v in point.leaves.items()})
        try:
            with limited(), _rounding_otherwise(rng) if not size else nullcontext():
                moved = truth(there).get(key)
        except GradcliError:
            return True
        if moved is None or np.shape(moved) != np.shape(a):
            return True
        with np.errstate(all="ignore"):
            change = np.where(_same(moved, a), 0.0, np.abs(moved - a))
            worst = max(worst, np.max(np.nan_to_num(change, nan=np.inf), initial=0.0))
    with np.errstate(all="ignore"):
        if np.all(_same(a, b) | (np.abs(a - b) <= _ROUNDING * worst)) or not np.isfinite(worst):
            return True
        return key != VALUE and bool(np.all(np.abs(a - b) <= _ROUNDING * _deviation(key, point)))


@contextmanager
def _rounding_otherwise(rng: np.random.Generator) -> Iterator[None]:
    """Within the block, what operations give is off by up to a unit in the last place, and what iterations find for a
    matrix by that of its largest number: they know the small ones no better. So is the pi of formulas in Python."""
    compute, pi = bind.apply_to_arrays, np.pi
    of_floats = {p: p.of_floats for p in table.entries() if isinstance(p, Primitive) and _rounds(p)}

    def otherwise(primitive: Primitive, operands: Sequence[Any], params: Any) -> Any:
        result = compute(primitive, operands, params)
        if not _rounds(primitive):
            return result
        move = _moved_together if primitive.name in _ITERATED else _moved_each
        moved = [move(r, rng) for r in _listed(result)]
        return moved if type(result) is list else moved[0]

    def otherwise_of_floats(function: Callable[..., Any], *operands: Any, **params: Any) -> Any:
        return _moved_each(function(*operands, **params), rng)

    np.pi = float(np.nextafter(pi, 4.0))
    for primitive, function in of_floats.items():
        primitive.of_floats = partial(otherwise_of_floats, function)
    try:
        with _computed_by(otherwise):
            yield
    finally:
        np.pi = pi
        for primitive, function in of_floats.items():
            primitive.of_floats = function


def _rounds(primitive: Primitive) -> bool:
    return not (primitive.vjp is None or primitive.selects or primitive.moves or primitive.piecewise)


def _moved_together(numbers: Any, rng: np.random.Generator) -> Any:
    return np.asarray(numbers) + 2.0**-52 * _largest([numbers]) * rng.uniform(-1, 1, np.shape(numbers))


def _moved_each(numbers: Any, rng: np.random.Generator) -> Any:
    """Whole numbers stay: they are likely to be exact, and indices. So do numbers that are no floats."""
    if not isinstance(numbers, float | np.floating | np.ndarray) or np.asarray(numbers).dtype.kind != "f":
        return numbers
    moved = np.where(
        numbers == np.rint(numbers), numbers, numbers * (1 + 2.0**-52 * rng.uniform(-1, 1, np.shape(numbers)))
    )
    return moved if np.shape(numbers) else float(moved)


def _listed(result: Any) -> list[Any]:
    """The results of a primitive that has one or several."""
    return result if type(result) is list else [result]


def _deviation(key: str, point: Point) -> float:
    """How far a derivative of the sum of the elements of the value is from one that is computed with other roundings."""
    try:
        with limited():
            found = derivatives_with_shadow(point.total, point.leaves, max(2, key.count(",") + 1)).deviations.get(key)
    except GradcliError:
        return np.inf
    # Where there is no number, nobody knows.
    return 0.0 if found is None else float(np.nan_to_num(np.max(as_numbers(found), initial=0.0), nan=np.inf))


def _has_odd_parts(point: Point) -> bool:
    """Whether there is an infinity or a nan on the way to the value."""
    compute, odd = bind.apply_to_arrays, False

    def seen(primitive: Primitive, operands: Sequence[Any], params: Any) -> Any:
        nonlocal odd
        result = compute(primitive, operands, params)
        odd = odd or any(map(_is_odd, _listed(result)))
        return result

    with _computed_by(seen), limited(), suppress(GradcliError):
        # Numbers alone are computed without it.
        point._replace(leaves={n: np.asarray(v) for n, v in point.leaves.items()}).evaluate({})
    return odd


def _has_sign_of_nan(point: Point) -> bool:
    """Whether the program asks for the sign of a nan, which is another from library to library."""
    return any(np.isnan(as_numbers(y)).any() for _x, y in _operands(copysign, point))


def _has_dependent_columns(point: Point) -> bool:
    """Whether the program has the orthonormal columns of a matrix with columns that are, to rounding, sums of multiples
    of those before: which way they point is rounding alone, and they have no derivative."""
    for (matrix,) in _operands(decompositions.orthonormal, point):
        with np.errstate(all="ignore"):
            new = np.abs(np.diagonal(np.linalg.qr(matrix, mode="r"), axis1=-2, axis2=-1))
            lengths = np.linalg.norm(matrix, axis=-2)[..., : new.shape[-1]]
            if np.any(new <= _NOISE * lengths):
                return True
    return False


def _has_equal_values(point: Point) -> bool:
    """Whether the program has singular values that are, to rounding, equal or 0: they have kinks there."""
    for (matrix,) in _operands(decompositions.svdvals, point):
        with np.errstate(all="ignore"):
            values = np.linalg.svd(matrix, compute_uv=False)
            values = np.concatenate([values, np.zeros_like(values[..., :1])], -1)
            if np.any(-np.diff(values) <= _NOISE * values[..., :1]):
                return True
    return False


def _operands(primitive: Primitive, point: Point) -> list[Any]:
    """What a primitive is applied to as the program runs."""
    found: list[Any] = []
    prepare = primitive.prepare

    def seen(*operands: Any, **params: Any) -> Any:
        found.append(operands)
        return (operands, params) if prepare is None else prepare(*operands, **params)

    primitive.prepare = seen
    try:
        with limited(), suppress(GradcliError):
            point.evaluate({})
    finally:
        primitive.prepare = prepare
    return found
