"""The ways to the numbers of a program: its value, and its derivatives of first and higher order."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import _by_reverse_mode, derivatives
from gradcli.errors import GradcliError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.syntax import parse, tree
from gradcli.primitives.entries.reductions import sum_
from tests.fuzz import checks, commands
from tests.fuzz.case import Case

# By the names of inputs, and two names for what is derived twice; the value by what is no name.
Numbers = dict[str, Any]
# A number that a function is of, in generated Python.
_OF_NUMBER = re.compile(r"(?<=\w)\((-?\d+\.\d*(?:e[+-]?\d+)?)\)")
VALUE = "the value"


class Point(NamedTuple):
    """A program and the numbers at which it is looked at, all of which are leaves."""

    program: tree.Module
    leaves: Mapping[str, Any]

    def evaluate(self, given: Mapping[str, Any]) -> Any:
        return evaluate(self.program, {**self.leaves, **given}).value

    def total(self, given: Mapping[str, Any]) -> Any:
        value = self.evaluate(given)
        return sum_(value) if arrays.shape(value) else value

    def wide(self) -> Point:
        """The same in numbers of a wider range and a few more digits, where the machine has them."""
        return self._replace(leaves={n: np.asarray(v, np.longdouble) for n, v in self.leaves.items()})

    def at(self, leaves: Mapping[str, Any]) -> Point:
        """The same elsewhere."""
        return self._replace(leaves={n: np.asarray(v) if np.shape(v) else float(v) for n, v in leaves.items()})


# A way to numbers of a program.
Reading = Callable[[Point], Numbers]


def limited() -> Any:
    return limits.within(20 * checks.MAX_STEPS, 20 * checks.MAX_ELEMENTS)


def has_value(case: Case) -> bool:
    """Whether a case has a value and a gradient."""
    try:
        with limited():
            by_reverse_mode(Point(parse(case.program), case.arrays()))
    except GradcliError:
        return False
    return True


def by_reverse_mode(point: Point) -> Numbers:
    """The value, and the gradients of the sum of its elements."""
    given = {n: Tensor(v).requires_grad_() for n, v in point.leaves.items()}
    value = point.evaluate(given)
    if not isinstance(value, Tensor):
        return {VALUE: as_numbers(value), **dict.fromkeys(given)}
    found = gradients(value, list(given.values()), Tensor(np.ones(value.shape)), retain_graph=False)
    return {VALUE: as_numbers(value), **{n: None if g is None else as_numbers(g) for n, g in zip(given, found)}}


def twice_by_reverse_mode(point: Point) -> Numbers:
    """The value, and the second derivatives of the sum of its elements."""
    found = _by_reverse_mode(point.total, point.leaves, 2, None).found
    return {
        VALUE: as_numbers(point.evaluate({})),
        **{n: None if d is None else as_numbers(d) for n, d in found.items()},
    }


def as_numbers(value: Any) -> Any:
    """An array of NumPy, in double precision or what is wider."""
    while isinstance(value, Tensor):
        value = value.inner
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return array
    return array if array.dtype == np.longdouble else array.astype(np.float64)


def by_compiled(compiled: Any, point: Point, shape: tuple[int, ...] | None = None) -> Numbers:
    if shape is None:
        shape = arrays.shape(point.evaluate({}))
    value, found = compiled.value_and_grad(point.leaves, grad_output=np.ones(shape) if shape else None)
    return {VALUE: value, **found}


def by_arrays(point: Point) -> Numbers:
    return by_reverse_mode(point._replace(leaves={n: np.asarray(v) for n, v in point.leaves.items()}))


def by_jacobians(compiled: Any, point: Point) -> Numbers:
    """The sums of Jacobians over the elements of the value. Of what is not finite the sum may be another than that of a
    backward pass, where 0 times infinity may be among the parts of any of them."""
    found = {n: j if j is None else np.asarray(j) for n, j in compiled.jacobian(point.leaves).items()}
    with np.errstate(all="ignore"):
        sums = {
            n: j if j is None else j.sum(axis=tuple(range(j.ndim - np.ndim(point.leaves[n])))) for n, j in found.items()
        }
    return {n: total for n, total in sums.items() if total is None or np.isfinite(total).all()}


def by_series(point: Point, order: int, names: Sequence[str] | None = None) -> Numbers:
    leaves = point.leaves if names is None else {n: point.leaves[n] for n in names}
    try:
        return derivatives(point.total, leaves, order)[1]
    except GradcliError:
        try:
            twice_by_reverse_mode(point)
        except GradcliError:
            # There is no second derivative, as that of the inverse of a matrix whose determinant is no float, or of a
            # clause for backward that has none itself.
            return {}
        raise


def by_hessian(compiled: Any, point: Point) -> Numbers:
    found: Numbers = compiled.hessian(point.leaves)
    return found


def by_derivatives(compiled: Any, point: Point, order: int) -> Numbers:
    found = compiled.derivatives(point.leaves, order)
    if isinstance(found, list):
        (name,) = point.leaves
        return {",".join([name] * k): d for k, d in enumerate(found) if k}
    return dict(found.items())


def formulas(program: str, language: str, point: Point) -> dict[str, str]:
    """What `diff` prints for all names; nothing where that is an error."""
    if program.startswith("--"):
        return {}
    words = Case(program, {n: np.asarray(v, np.float64).tolist() for n, v in point.leaves.items()}).words()
    names = ",".join(point.leaves)
    # Formulas take more steps than numbers.
    limit = f"--max-steps={200 * checks.MAX_STEPS}"
    printed = commands.run(["diff", program, *words, f"--wrt={names}", f"--to={language}", "--json", limit])
    return {} if printed.status else json.loads(printed.out)["derivatives"]


def by_formulas(texts: Mapping[str, str], language: str, point: Point) -> Numbers:
    """The gradient by what `diff` printed; nothing where that is not finite, as at a kink."""
    found: Numbers = {}
    for name, text in texts.items():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = _of_python(text, point) if language == "python" else _of_text(text, point)
        leaf, _, index = name.rstrip("]").partition("[")
        shape = np.shape(point.leaves[leaf])
        if index:
            found.setdefault(leaf, np.zeros_like(point.leaves[leaf]))[tuple(map(int, index.split(",")))] = value
        else:
            found[name] = np.broadcast_to(as_numbers(value), shape)
    return {n: value for n, value in found.items() if np.isfinite(value).all()}


def _of_text(text: str, point: Point) -> Any:
    # A name of a constant may be that of an input, and a name that is read where nothing runs has no value.
    read = [n for n in scope.free_names(parse(text)) if n in point.leaves or n not in scope.CONSTANTS]
    return gradcli.compile(text)(**{n: point.leaves.get(n, np.nan) for n in read})


def _of_python(text: str, point: Point) -> Any:
    scope: dict[str, Any] = {}
    if any(v.dtype == np.longdouble for v in map(np.asarray, point.leaves.values())):
        text = text.replace("np.float64(", "np.longdouble(").replace(", float)", ", np.longdouble)")
        text = _OF_NUMBER.sub(r"(np.longdouble(\1))", text)
    exec(text, scope)
    function = next(f for n, f in scope.items() if n.startswith("derivative_"))
    # A word of Python has an underscore behind it, and a name that is read where nothing runs is a parameter too.
    values = {**{f"{n}_": v for n, v in point.leaves.items()}, **point.leaves}
    return function(*(values.get(n, np.nan) for n in inspect.signature(function).parameters))
