"""Compares value, gradient and second derivative of every function that PyTorch also has with PyTorch.

Needs the dependency group `oracle`. `python -m tests.oracle` prints, for each function, the number of samples and the
worst relative errors; `python -m pytest tests/oracle.py` fails where an error exceeds rounding. Pytest collects this
file only if it is named.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import gradcli
from gradcli import Tensor
from gradcli.primitives import table
from gradcli.primitives.operation import Composite, Operation
from tests.primitives.test_primitives import CREATION, case_of
from tests.pytorch import MISSING, NUMBERS, TWINS
from tests.references import ELEMENTWISE

FUNCTIONS = tuple(operation for operations in table.subjects().values() for operation in operations)
COMPARED = tuple(f for f in FUNCTIONS if f.name in TWINS)
EDGES = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-300, -1e-300, 1e-9, 1e9, 40.0, -40.0, 800.0, -800.0, 1e300, -1e300)
SHAPES: dict[int, Sequence[Any]] = {1: [[(7,)], [(3, 4)]], 2: [[(7,), (7,)], [(3, 1), (4,)], [(), (3, 2)]]}
# These entries have no samples of their own.
MATRICES: dict[str, Any] = {"eigh": [[2.0, 0.5], [0.5, 3.0]], "qr": [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]}
DRAWS = 12
KINDS = ("value", "gradient", "second")

Function = Callable[..., Any]


class Sample(NamedTuple):
    """Operands, and the functions of both libraries to apply to them."""

    ours: Function
    theirs: Function
    operands: tuple[Any, ...]


def weights(shape: Sequence[int], seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, tuple(shape))


# --- samples


def samples(function: Operation) -> Iterator[Sample]:
    """Elementwise functions at all pairs of edge cases and at random arrays; every function at its own samples'
    shapes."""
    random = np.random.default_rng(sum(map(ord, function.name)))
    if function.name in ELEMENTWISE:
        yield from _elementwise(function, random)
    if function.name in NUMBERS:
        return
    for sample in function.samples or [MATRICES[function.name]]:
        yield from _made(function, sample) if function in CREATION else _like(function, sample, random)


def _made(function: Operation, sample: Any) -> Iterator[Sample]:
    arguments = sample if isinstance(sample, tuple) else (sample,)
    yield Sample(partial(function, *arguments), partial(TWINS[function.name], *arguments), ())


def _like(function: Operation, sample: Any, random: np.random.Generator) -> Iterator[Sample]:
    """Operands near the sample where the domain matters, else random ones, every second time with ties."""
    twin = Composite(function.name, function.signature, function.doc, TWINS[function.name], derivative="-")
    ours, theirs = case_of(function, sample), case_of(twin, sample)
    near = function.name in ELEMENTWISE or function in table.subjects()["linear algebra"]
    for i in range(DRAWS):
        operands = [np.asarray(o) for o in ours.operands]
        if near:
            drawn = [o * (1 + 0.3 * random.uniform(-1, 1, o.shape)) for o in operands]
        elif i % 2:
            drawn = [random.integers(-2, 3, o.shape).astype(float) for o in operands]
        else:
            drawn = [random.normal(0, 2, o.shape) for o in operands]
        yield Sample(ours.call, theirs.call, tuple(drawn))


def _elementwise(function: Operation, random: np.random.Generator) -> Iterator[Sample]:
    _, domains, before, then = ELEMENTWISE[function.name]
    domains = domains[:1] if function.name in NUMBERS else domains

    def ours(*operands: Any) -> Any:
        return function(*before, *operands, *then)

    def theirs(*operands: Any) -> Any:
        return TWINS[function.name](*before, *operands, *then)

    for numbers in itertools.product(EDGES, repeat=len(domains)):
        yield Sample(ours, theirs, numbers)
    for shapes in SHAPES[len(domains)]:
        for i in range(DRAWS):
            drawn = [random.uniform(low, high, shape) for shape, (low, high) in zip(shapes, domains)]
            ties = [random.integers(-2, 3, shape).astype(float) for shape in shapes]
            yield Sample(ours, theirs, tuple(ties if i % 4 == 3 else drawn))


# --- both libraries


class Outcome(NamedTuple):
    """The value and the derivatives by each operand under fixed cotangents; None where there are none."""

    value: list[np.ndarray]
    gradient: list[np.ndarray] | None
    second: list[np.ndarray] | None


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _weighted(parts: Sequence[Any], first: int, with_weights: Function) -> Any:
    """The weighted sum of all elements of all outputs."""
    return sum((part * with_weights(part, first + i)).sum() for i, part in enumerate(parts) if part is not None)


def _outcome(value: Any, leaves: Sequence[Any], grad: Function, with_weights: Function, plain: Function) -> Outcome:
    parts = _parts(value)
    shown = [plain(p) for p in parts]
    if not leaves or not all(getattr(p, "requires_grad", False) for p in parts):
        return Outcome(shown, None, None)
    try:
        first = grad(_weighted(parts, 0, with_weights), leaves)
    except RuntimeError:
        return Outcome(shown, None, None)
    zeros = [np.zeros(np.shape(plain(leaf))) for leaf in leaves]
    gradient = [z if g is None else plain(g) for g, z in zip(first, zeros)]
    slope = _weighted(first, 10, with_weights)
    if not getattr(slope, "requires_grad", False):
        return Outcome(shown, gradient, zeros)
    try:
        second = grad(slope, leaves)
    except RuntimeError:
        return Outcome(shown, gradient, None)
    return Outcome(shown, gradient, [z if s is None else plain(s) for s, z in zip(second, zeros)])


def ours(sample: Sample) -> Outcome:
    leaves = [gradcli.tensor(o, requires_grad=True) for o in sample.operands]

    def grad(value: Any, by: Sequence[Any]) -> Any:
        return gradcli.grad(value, by, create_graph=True, allow_unused=True)

    def plain(value: Any) -> np.ndarray:
        return np.asarray(value.detach() if isinstance(value, Tensor) else value, dtype=float)

    return _outcome(sample.ours(*leaves), leaves, grad, lambda part, seed: weights(part.shape, seed), plain)


def theirs(sample: Sample) -> Outcome:
    leaves = [torch.tensor(o, dtype=torch.float64, requires_grad=True) for o in sample.operands]

    def grad(value: Any, by: Sequence[Any]) -> Any:
        return torch.autograd.grad(value, by, create_graph=True, allow_unused=True)

    def with_weights(part: Any, seed: int) -> Any:
        return torch.as_tensor(weights(part.shape, seed))

    return _outcome(sample.theirs(*leaves), leaves, grad, with_weights, lambda v: v.detach().double().numpy(force=True))


# --- comparison


class Deviation(NamedTuple):
    """An intended difference from PyTorch: the functions, the kind of result, the operands, and the reason."""

    functions: str
    kinds: str
    where: Callable[..., Any]
    reason: str

    def covers(self, function: str, kind: str, operands: Sequence[Any]) -> bool:
        if function not in self.functions.split() or kind not in self.kinds.split():
            return False
        with np.errstate(all="ignore"):
            return bool(np.any(self.where(*map(np.asarray, operands))))


def _pole(x: Any) -> Any:
    return (x <= 0) & (x == np.floor(x))


def _always(*operands: Any) -> bool:
    return True


def _apart(x: Any, y: Any) -> Any:
    """Where one number is negligible beside the other."""
    return np.minimum(abs(x), abs(y)) < 1e-6 * np.maximum(abs(x), abs(y))


DEVIATIONS = (
    Deviation("expm1", "gradient second", lambda x: x < -30, "PyTorch has 1 + y, which cancels"),
    Deviation("sigmoid", "gradient second", lambda x: x > 30, "PyTorch has 1 - y, which cancels"),
    Deviation("logsigmoid softplus silu", "second", lambda x: x > 30, "PyTorch has 1 - y, which cancels"),
    Deviation("sigmoid", "second", lambda x: abs(x) < 1e-6, "ours cancels to the rounding of the gradient"),
    Deviation(
        "sinc", "value gradient second", lambda x: (x == np.round(x)) & (x != 0), "PyTorch has the rounding of pi"
    ),
    Deviation("sinc", "gradient second", lambda x: abs(x) < 1e-8, "PyTorch has 0/0, ours is the series"),
    Deviation("atan2", "gradient second", lambda x, y: np.hypot(x, y) > 1e150, "PyTorch's square overflows"),
    Deviation("asinh acosh", "gradient", lambda x: abs(x) > 1e150, "PyTorch's square overflows"),
    Deviation("atan2", "gradient second", lambda x, y: np.hypot(x, y) < 1e-150, "PyTorch's square underflows"),
    Deviation("hypot", "second", _apart, "PyTorch cancels"),
    Deviation("copysign", "second", _always, "PyTorch divides by x, ours is 0"),
    Deviation("logaddexp", "second", lambda x, y: abs(x - y) > 700, "PyTorch has inf/inf where ours is 0"),
    Deviation(
        "logaddexp2", "value", lambda x, y: (x == y) & (x == -1), "PyTorch has the rounding of log(2), ours is 0"
    ),
    Deviation(
        "logaddexp2", "second", lambda x, y: abs(x - y) > 300, "PyTorch cancels, then has inf/inf where ours is 0"
    ),
    Deviation("softsign", "gradient second", lambda x: abs(x) > 1e6, "PyTorch cancels"),
    Deviation("celu selu", "second", lambda x: x == 0, "ours is that on the left, as the gradient of elu; PyTorch's 0"),
    Deviation("mish", "second", lambda x: x > 30, "PyTorch has 1 - y**2, which cancels, then nan"),
    Deviation("tanhshrink", "value gradient", lambda x: abs(x) < 1e-3, "PyTorch cancels"),
    Deviation("tanhshrink", "second", lambda x: abs(x) > 18, "PyTorch has 1 - y**2, which cancels"),
    Deviation("i0e", "second", lambda x: x == 0, "at its kink ours is 0, as that of abs"),
    Deviation("i0e i1e", "gradient second", lambda x: abs(x) > 1e4, "PyTorch cancels"),
    Deviation("i1e", "second", lambda x: (abs(x) < 1e-6) & (x != 0), "PyTorch cancels"),
    Deviation("erfcx", "gradient second", lambda x: x > 30, "PyTorch cancels"),
    Deviation("log_ndtr", "gradient second", lambda x: x < -30, "PyTorch cancels, then has nan"),
    Deviation("multigammaln", "gradient second", lambda x: x <= 1, "PyTorch has a large number at a pole"),
    Deviation("pow", "second", lambda x, q: x == 0, "PyTorch has nan where the convention or the limit is known"),
    Deviation("pow", "second", lambda x, q: q == 0, "PyTorch takes the derivative by x as flat in q; it is 1/x"),
    Deviation("elu", "second", lambda x: x == 0, "ours is that on the left, as the gradient; PyTorch's 0"),
    Deviation("logit", "second", lambda x: (abs(x) < 1e-150) | (x == 1), "PyTorch has nan where it is infinite"),
    Deviation("gelu", "second", lambda x: abs(x) > 1e150, "PyTorch has 0*inf"),
    Deviation("i0 i1", "gradient second", lambda x: abs(x) > 700, "PyTorch has nan where the value overflows"),
    Deviation("i1", "second", lambda x: abs(x) < 1e-6, "PyTorch cancels"),
    Deviation("lgamma digamma", "gradient second", _pole, "PyTorch has a large number at a pole"),
)

# Tolerances for relative errors of PyTorch, or known ones of gradcli.
TOLERANCES = {
    "lgamma": (1e-9, "PyTorch's trigamma has 9 digits"),
    "digamma": (1e-9, "PyTorch's trigamma has 9 digits"),
    "polygamma": (1e-9, "PyTorch's polygamma has 9 digits"),
    "multigammaln": (1e-9, "PyTorch's trigamma has 9 digits"),
    "hardsigmoid": (1e-7, "PyTorch's sixth is in single precision"),
    "j0": (1e-3, "PyTorch's loses digits near its zeros"),
    "j1": (1e-3, "PyTorch's loses digits near its zeros"),
    "matrix_exp": (1e-9, "ours loses digits of the gradient"),
}
TOLERANCE = 1e-10


def error(found: np.ndarray, expected: np.ndarray, scale: float) -> float:
    """The largest difference, relative to the number or to a thousandth of `scale`."""
    if found.shape != expected.shape:
        return math.inf
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        # Subnormal numbers have fewer digits.
        same |= np.abs(found - expected) < np.finfo(float).tiny
        size = np.maximum(np.maximum(np.abs(expected), np.abs(found)), 1e-3 * scale)
        relative = np.abs(found - expected) / size
    return float(np.where(same, 0.0, np.where(np.isnan(relative), math.inf, relative)).max(initial=0.0))


def _scale(arrays: Sequence[np.ndarray]) -> float:
    """The largest number among arrays; 0 for scalars, which are compared digit by digit."""
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays if a.ndim), default=0.0)


class Row(NamedTuple):
    """The comparison of one function: the number of samples, of intended deviations, and the worst errors."""

    function: str
    samples: int
    deviating: int
    worst: dict[str, float | None]


def compare(function: Operation, seen: set[Deviation] | None = None) -> Row:
    """Compare all samples of a function; `seen` collects the deviations that occurred."""
    worst: dict[str, float | None] = dict.fromkeys(KINDS)
    count = deviating = 0
    for sample in samples(function):
        count += 1
        mine, other = ours(sample), theirs(sample)
        met = {kind: _met(function.name, kind, sample) for kind in KINDS}
        scale = 0.0
        differs = False
        for kind in KINDS:
            found, expected = getattr(mine, kind), getattr(other, kind)
            # Where the value is nan, derivatives are not compared.
            if found is None or expected is None or (any(np.isnan(v).any() for v in other.value) and kind != "value"):
                continue
            scale = max(scale, _scale(expected))
            worst_here = max((error(f, e, scale) for f, e in zip(found, expected, strict=True)), default=0.0)
            if met[kind] and worst_here > TOLERANCE:
                differs = True
                if seen is not None:
                    seen.update(met[kind])
                continue
            worst[kind] = max(worst[kind] or 0.0, worst_here)
        deviating += differs
    return Row(function.name, count, deviating, worst)


def _met(function: str, kind: str, sample: Sample) -> list[Deviation]:
    return [d for d in DEVIATIONS if d.covers(function, kind, sample.operands)]


# --- tests


def test_the_map_covers_the_table():
    names = {f.name for f in FUNCTIONS}
    assert TWINS.keys() | MISSING.keys() == names
    assert not TWINS.keys() & MISSING.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", COMPARED, ids=lambda f: f.name)
def test_it_agrees_with_pytorch(function):
    seen: set[Deviation] = set()
    row = compare(function, seen)
    tolerance = TOLERANCES.get(function.name, (TOLERANCE,))[0]
    assert row.samples
    assert {kind: e for kind, e in row.worst.items() if e is not None and e > tolerance} == {}
    assert seen == {d for d in DEVIATIONS if function.name in d.functions.split()}


# --- the table


def main() -> None:
    """Print a table of the comparisons."""
    warnings.simplefilter("ignore")
    rows = [compare(function) for function in COMPARED]
    print(f"{'function':16}{'samples':>8}{'deviating':>10}" + "".join(f"{kind:>10}" for kind in KINDS))
    for row in rows:
        errors = (row.worst[kind] for kind in KINDS)
        shown = "".join(f"{'-' if e is None else f'{e:.1e}':>10}" for e in errors)
        print(f"{row.function:16}{row.samples:8}{row.deviating:10}{shown}")
    total = sum(row.samples for row in rows)
    print(f"\n{len(rows)} functions, {total} samples, {sum(row.deviating for row in rows)} of them deviate on purpose:")
    for deviation in DEVIATIONS:
        print(f"  {deviation.functions.replace(' ', ', ')}: {deviation.reason}")
    print("less accurate:")
    for name, (tolerance, reason) in TOLERANCES.items():
        print(f"  {name} to {tolerance:.0e}: {reason}")
    print("not compared:")
    for name, reason in MISSING.items():
        print(f"  {name}: {reason}")


if __name__ == "__main__":
    main()
