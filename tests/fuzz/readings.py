"""Every way to a value and its derivatives gives the same numbers."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import _by_reverse_mode, derivatives, watched_derivatives, watched_leaf
from gradcli.errors import EvaluationError, GradcliError, LimitError, NotRecordableError
from gradcli.kinds.rounding import Roundings
from gradcli.kinds.taylor import Jet
from gradcli.language import scope
from gradcli.language.interpreter import evaluate
from gradcli.language.syntax import parse, tree
from gradcli.primitives.reductions import sum_
from gradcli.run import session
from tests.fuzz import checks, commands
from tests.fuzz.case import Case, Finding

Numbers = dict[str, Any]

# Relative to the largest number of an array; what is worse is looked at again, with the condition of the program.
_ALIKE = 1e-10
_SMALL, _ALIKE_SMALL = 1e-150, 1e-3
# Below the one, factors may be 0 for having no digits left; beyond the other, parts may be infinite.
_UNDERFLOW, _OVERFLOW = 1e-155, 1e300
# What gives vectors, which turn without limit where two eigenvalues are equal.
_VECTORS = re.compile(r"\b(eigh|svd)\b")
# A number beyond 1e100, or its inverse.
_FAR_OUT = re.compile(r"[eE][+-]?\d{3}")
# So many times what the numbers change where the inputs change a little may be rounding.
_ROUNDING = 100.0
_LITTLE = 3e-14


class Point(NamedTuple):
    """A program and the numbers at which it is looked at, all of which are leaves."""

    program: tree.Module
    leaves: Mapping[str, Any]

    def evaluate(self, given: Mapping[str, Any]) -> Any:
        return evaluate(self.program, {**self.leaves, **given}).value

    def total(self, given: Mapping[str, Any]) -> Any:
        value = self.evaluate(given)
        return sum_(value) if arrays.shape(value) else value

    def at(self, leaves: Mapping[str, Any]) -> Point:
        """The same elsewhere."""
        return self._replace(leaves={n: np.asarray(v) if np.shape(v) else float(v) for n, v in leaves.items()})


# A way to numbers of a program.
Reading = Callable[[Point], Numbers]


def disagreement(case: Case) -> Finding | None:
    """Two readings of the case that differ by more than rounding, if there are any."""
    try:
        program = parse(case.program)
        reads = scope.outer_reads(program)
        point = Point(program, {n: v for n, v in case.arrays().items() if n in reads})
        if not point.leaves:
            return None
        with _limited():
            first = by_reverse_mode(point)
    except GradcliError as error:
        return checks.wrong_error(error)
    rng = Random(case.draw)
    compiled = gradcli.compile(case.program)
    for name, reading in _first_order(compiled, rng, point.leaves):
        if "Jacobians" in name and "backward" in case.program:
            # Such a clause need not be linear, nor good for every cotangent.
            continue
        found = _compared(name, reading, by_reverse_mode, first, point)
        if found is not None:
            return found
    return _elsewhere(compiled, point, rng) or _second_order(compiled, point, rng) or _printed(case, point, first, rng)


def has_value(case: Case) -> bool:
    """Whether a case has a value and a gradient."""
    try:
        with _limited():
            by_reverse_mode(Point(parse(case.program), case.arrays()))
    except GradcliError:
        return False
    return True


def _first_order(compiled: Any, rng: Random, leaves: Mapping[str, Any]) -> Iterator[tuple[str, Reading]]:
    for time in ("first", "second", "third"):
        yield f"the {time} run of a compiled program", partial(_by_compiled, compiled)
    yield "arrays for numbers", _by_arrays
    yield "Jacobians", partial(_by_jacobians, compiled)
    yield "recorded Jacobians", partial(_by_jacobians, compiled)
    yield "series", partial(_by_series, order=rng.choice((2, 2, 3)))
    if len(leaves) > 1:
        yield "a series by one name", partial(_by_series, order=rng.choice((2, 2, 3, 5)), names=[rng.choice([*leaves])])


def _elsewhere(compiled: Any, point: Point, rng: Random) -> Finding | None:
    """A recording must notice where it is good for other numbers no more."""
    factor, step = rng.choice((-1.0, 0.0, 0.5, 3.0)), rng.choice((0.0, 0.3, -2.0))
    with np.errstate(all="ignore"):
        other = point.at({n: v * factor + step for n, v in point.leaves.items()})
    name = "a compiled program, run with other numbers,"
    try:
        with _limited():
            first = by_reverse_mode(other)
    except LimitError:
        return None
    except GradcliError as error:
        with suppress(GradcliError), _limited():
            _by_compiled(compiled, other, np.shape(by_reverse_mode(point)["value"]))
            return Finding(f"{name}: no error", error.report())
        return checks.wrong_error(error)
    return _compared(name, partial(_by_compiled, compiled), by_reverse_mode, first, other)


def _second_order(compiled: Any, point: Point, rng: Random) -> Finding | None:
    if sum(np.size(v) for v in point.leaves.values()) > _MOST_SECOND or _is_far_out(point):
        return None
    try:
        with _limited():
            first = twice_by_reverse_mode(point)
    except GradcliError as error:
        return checks.wrong_error(error)
    readings: list[tuple[str, Reading]] = [("series of order 3", partial(_by_series, order=3))]
    if not np.shape(first["value"]):
        readings += [(f"the {t} Hessian", partial(_by_hessian, compiled)) for t in ("first", "second")]
        readings += [
            ("derivatives of a compiled program", partial(_by_derivatives, compiled, order=rng.choice((2, 3))))
        ]
    # Where a derivative is not finite, what 0 times infinity is in it and in those of it depends on the way.
    odd = {key for key, numbers in first.items() if key != "value" and _is_odd(numbers)}
    first = {key: numbers for key, numbers in first.items() if odd.isdisjoint((key, *key.split(",")))}
    for name, reading in readings:
        found = _compared(name, reading, twice_by_reverse_mode, first, point)
        if found is not None:
            return found
    return None


_MOST_SECOND = 9
_NUDGE = 1e-5
# 16 units in the last place.
_NOISE = 16 * 2.0**-52


def _printed(case: Case, point: Point, first: Numbers, rng: Random) -> Finding | None:
    """Formulas that are printed mean the gradient, where that is finite and the program smooth."""
    if any(n is None or not np.isfinite(n).all() for n in first.values()) or np.shape(first["value"]):
        return None
    if _is_far_out(point):
        # Formulas have no stable forms.
        return None
    request = session.EvaluationRequest(point.program, point.leaves, tuple(point.leaves))
    with _limited():
        if any(w.code == "nonsmooth" for w in session.run(request).warnings):
            return None
    language = rng.choice(("text", "python"))
    by_formulas = partial(_by_formulas, case.program, language)
    name = f"formulas as {language}"
    found = _compared(name, by_formulas, by_reverse_mode, first, point, own_rounding=True)
    if found is None or _cancels(case.program, point):
        return None
    # Formulas hold but at single points, such as 0 of `where(x == 0, 1, x)`.
    beside = point.at({n: v * (1 + _NUDGE) + _NUDGE for n, v in point.leaves.items()})
    try:
        with _limited():
            first = by_reverse_mode(beside)
    except GradcliError:
        return found
    return _compared(name, by_formulas, by_reverse_mode, first, beside, own_rounding=True)


def _formulas(program: str, language: str, point: Point) -> dict[str, str]:
    """What `diff` prints for all names; nothing where that is an error."""
    if program.startswith("--"):
        return {}
    words = Case(program, {n: np.asarray(v).tolist() for n, v in point.leaves.items()}).words()
    names = ",".join(point.leaves)
    # Formulas take more steps than numbers.
    limit = f"--max-steps={20 * checks.MAX_STEPS}"
    printed = commands.run(["diff", program, *words, f"--wrt={names}", f"--to={language}", "--json", limit])
    return {} if printed.status else json.loads(printed.out)["derivatives"]


def _cancels(program: str, point: Point) -> bool:
    """Whether a formula has lost most of its digits at the point, as `1 - tanh(x)**2` has far from 0."""
    for text in _formulas(program, "text", point).values():
        try:
            roundings = Roundings()
            leaves = {n: watched_leaf(v, roundings) for n, v in point.leaves.items()}
            value = evaluate(parse(text), leaves, rewrite=False).value
        except GradcliError:
            continue
        series = value.inner if isinstance(value, Tensor) else None
        if isinstance(series, Jet) and series.shadow is not None:
            number, other = np.asarray(series.inner), np.asarray(series.shadow.inner)
            if np.any(np.abs(number - other) > 1e-6 * np.abs(number)):
                return True
    return False


def _by_formulas(program: str, language: str, point: Point) -> Numbers:
    """The gradient by what `diff` prints for all names; nothing where that is not finite, as at a kink."""
    found: Numbers = {}
    for name, text in _formulas(program, language, point).items():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = _of_python(text, point) if language == "python" else _of_text(text, point)
        leaf, _, index = name.rstrip("]").partition("[")
        shape = np.shape(point.leaves[leaf])
        if index:
            found.setdefault(leaf, np.zeros(shape))[tuple(map(int, index.split(",")))] = value
        else:
            found[name] = np.broadcast_to(np.asarray(value, np.float64), shape)
    return {n: value for n, value in found.items() if np.isfinite(value).all()}


def _of_text(text: str, point: Point) -> Any:
    # A name of a constant may be that of an input.
    read = scope.outer_reads(parse(text))
    return gradcli.compile(text)(**{n: v for n, v in point.leaves.items() if n in read})


def _of_python(text: str, point: Point) -> Any:
    scope: dict[str, Any] = {}
    exec(text, scope)
    function = next(f for n, f in scope.items() if n.startswith("derivative_"))
    # A name that is read where nothing runs is a parameter too.
    return function(*(point.leaves.get(n, np.nan) for n in inspect.signature(function).parameters))


# --- the readings


def by_reverse_mode(point: Point) -> Numbers:
    """The value, and the gradients of the sum of its elements."""
    given = {n: Tensor(v).requires_grad_() for n, v in point.leaves.items()}
    value = point.evaluate(given)
    if not isinstance(value, Tensor):
        return {"value": _numbers(value), **dict.fromkeys(given)}
    found = gradients(value, list(given.values()), Tensor(np.ones(value.shape)), retain_graph=False)
    return {"value": _numbers(value), **{n: None if g is None else _numbers(g) for n, g in zip(given, found)}}


def twice_by_reverse_mode(point: Point) -> Numbers:
    """The value, and the second derivatives of the sum of its elements."""
    found = _by_reverse_mode(point.total, point.leaves, 2, None).found
    return {"value": _numbers(point.evaluate({})), **{n: None if d is None else _numbers(d) for n, d in found.items()}}


def _numbers(value: Any) -> Any:
    while isinstance(value, Tensor):
        value = value.inner
    return np.asarray(value, np.float64)


def _by_compiled(compiled: Any, point: Point, shape: tuple[int, ...] | None = None) -> Numbers:
    if shape is None:
        shape = arrays.shape(point.evaluate({}))
    value, found = compiled.value_and_grad(point.leaves, grad_output=np.ones(shape) if shape else None)
    return {"value": value, **found}


def _by_arrays(point: Point) -> Numbers:
    return by_reverse_mode(point._replace(leaves={n: np.asarray(v) for n, v in point.leaves.items()}))


def _by_jacobians(compiled: Any, point: Point) -> Numbers:
    """The sums of Jacobians over the elements of the value. Of what is not finite the sum may be another than that of a
    backward pass, where 0 times infinity may be among the parts of any of them."""
    found = {n: j if j is None else np.asarray(j) for n, j in compiled.jacobian(point.leaves).items()}
    with np.errstate(all="ignore"):
        sums = {
            n: j if j is None else j.sum(axis=tuple(range(j.ndim - np.ndim(point.leaves[n])))) for n, j in found.items()
        }
    return {n: total for n, total in sums.items() if total is None or np.isfinite(total).all()}


def _by_series(point: Point, order: int, names: Sequence[str] | None = None) -> Numbers:
    leaves = point.leaves if names is None else {n: point.leaves[n] for n in names}
    try:
        return derivatives(point.total, leaves, order)[1]
    except EvaluationError:
        try:
            twice_by_reverse_mode(point)
        except EvaluationError:
            # There is no second derivative, as that of the inverse of a matrix whose determinant is no float.
            return {}
        raise


def _by_hessian(compiled: Any, point: Point) -> Numbers:
    found: Numbers = compiled.hessian(point.leaves)
    return found


def _by_derivatives(compiled: Any, point: Point, order: int) -> Numbers:
    found = compiled.derivatives(point.leaves, order)
    if isinstance(found, list):
        (name,) = point.leaves
        return {",".join([name] * k): d for k, d in enumerate(found) if k}
    return dict(found.items())


# --- comparison


def _limited() -> Any:
    return limits.within(20 * checks.MAX_STEPS, 20 * checks.MAX_ELEMENTS)


def _compared(
    name: str, reading: Reading, truth: Reading, first: Numbers, point: Point, own_rounding: bool = False
) -> Finding | None:
    """That a reading differs from the truth, which is `first` at the point. With `own_rounding` it may differ by what
    the reading itself changes by where the inputs change a little: the cosine of pi*x, which the derivative of sinc(x)
    has in formulas, says nothing of a large x."""
    try:
        with _limited():
            found = {key: None if d is None else _numbers(d) for key, d in reading(point).items()}
        if "copysign" in point.program.source:
            # Libraries do not agree about the sign of a nan.
            first, found = ({k: n if n is None else np.abs(n) for k, n in m.items()} for m in (first, found))
    except (LimitError, NotRecordableError) as error:
        return checks.wrong_error(error)
    except GradcliError as error:
        return checks.wrong_error(error) or Finding(f"{name}: an error", error.report())
    # There, what 0 times infinity is in a derivative depends on the way.
    without_a_value = _is_odd(first["value"]) or not np.size(first["value"])
    for key, numbers in found.items():
        if key not in first or (without_a_value and (_is_odd(first[key]) or _is_odd(numbers))):
            continue
        if ("series" in name or "Jacobians" in name) and _is_odd(first[key]):
            # A series may know that a derivative is 0 where reverse mode has 0 times infinity, as the rows of a
            # Jacobian leave out what they do not ask for.
            continue
        close = _ALIKE_SMALL if _is_far_out(point) else _ALIKE
        if truth is twice_by_reverse_mode and _is_odd(numbers) and not np.any(first[key]):
            # What was recorded behind a choice takes all zeros for those of what was not taken.
            continue
        if not (np.any(first[key]) or _is_odd(numbers)) and _largest([numbers]) <= _NOISE * _largest(first.values()):
            # A zero that is the difference of equal numbers.
            continue
        if not _alike(first[key], numbers, close) and not _rounding(truth, key, first[key], numbers, point):
            if own_rounding and _rounding(reading, key, numbers, first[key], point):
                continue
            part = key if key == "value" else "a derivative"
            return Finding(f"{name}: {part} differs", f"{key}: {first[key]} by reverse mode, {numbers} by {name}")
    return None


def _largest(all_numbers: Iterable[Any]) -> float:
    """The largest absolute value that is finite; 0 of nothing."""
    known = (np.abs(n) for n in all_numbers if n is not None)
    return max((float(np.max(n, initial=0.0, where=np.isfinite(n))) for n in known), default=0.0)


def _is_odd(numbers: Any) -> bool:
    return numbers is not None and not np.isfinite(numbers).all()


def _is_far_out(point: Point) -> bool:
    """Whether the square of a number, or its inverse, has few digits."""
    if _FAR_OUT.search(point.program.source):
        return True
    return any(np.any((v != 0) & ((v < 1e-150) | (v > 1e150))) for v in map(np.abs, point.leaves.values()))


def _is_subnormal(point: Point) -> bool:
    return any(np.any((np.abs(v) < 2.3e-308) & (v != 0)) for v in map(np.asarray, point.leaves.values()))


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


def _same(a: Any, b: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _rounding(truth: Reading, key: str, a: Any, b: Any, point: Point) -> bool:
    """Whether the difference is no more than what the truth changes by where the inputs change a little."""
    if a is None or b is None or np.shape(a) != np.shape(b):
        return False
    if _is_subnormal(point) and _is_odd(b):
        # The inverse of a number that small is infinite.
        return True
    if key != "value" and _VECTORS.search(point.program.source):
        # Where two eigenvalues are equal, rounding alone says which vectors belong to them, and how they turn.
        return True
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    rng = np.random.default_rng(0)
    worst = 0.0
    for size in (_LITTLE, -_LITTLE, 30 * _LITTLE, -30 * _LITTLE):
        there = point.at({n: v * (1 + size * rng.uniform(0.5, 1, np.shape(v))) for n, v in point.leaves.items()})
        try:
            with _limited():
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
        return key != "value" and bool(np.all(np.abs(a - b) <= _ROUNDING * _deviation(key, point)))


def _deviation(key: str, point: Point) -> float:
    """How far a derivative of the sum of the elements of the value is from one that is computed with other roundings."""
    try:
        with _limited():
            found = watched_derivatives(point.total, point.leaves, max(2, key.count(",") + 1)).deviations.get(key)
    except GradcliError:
        return np.inf
    return 0.0 if found is None else float(np.max(_numbers(found), initial=0.0))
