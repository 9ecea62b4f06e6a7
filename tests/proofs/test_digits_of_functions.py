"""Tests every elementwise function in ball arithmetic: results enclose mpmath's digits and are as narrow as
requested."""

from __future__ import annotations

import itertools
import json
import math
import random
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

import gradcli
from gradcli.arrays import backends, floats, using_namespace
from gradcli.arrays.flint import flint_arrays, flint_bessel
from gradcli.arrays.flint.balls import Balls, Number, UndecidedError, exact, from_text, precise, to_float
from gradcli.arrays.flint.flint_arrays import MissingDigitsError
from gradcli.arrays.flint.flint_names import MISSING_FUNCTIONALS, MISSING_FUNCTIONS, of_numbers
from gradcli.errors import GradcliError
from gradcli.kinds.jets import Jet
from gradcli.language.names import reference
from gradcli.primitives import table
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries import exponential
from gradcli.primitives.entries.arithmetic import ones_like
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from tests.proved_digits import DATA, ORDER
from tests.references import ELEMENTWISE
from tests.samples import has_complex_sample, several

DIGITS = 100
BITS = (384, 768, 1536)
REFERENCES = json.loads(DATA.read_text())
LACKING = MISSING_FUNCTIONS.keys() & REFERENCES.keys()
NAMES = sorted(REFERENCES.keys() - LACKING)
FUNCTIONS = {e.name: e for e in table.entries() if e.name in REFERENCES}
# Functions of several numbers whose derivatives are computed one by one, up to a lower order.
ORDERS = dict.fromkeys(
    (
        "elliprj", "elliprd", "elliprf", "elliprg", "hyp2f1", "partial_of_four", "partial_of_three", "betaincc",
        "betaincinv", "betainccinv", "polylog", "hyperu", "ellipkinc", "ellipeinc", "stdtrit",
    ),
    2,
)  # fmt: skip
# Functions whose floats are rounded from proved digits.
BY_BALLS = {
    "polylog",
    "hyp1f1",
    "hyperu",
    "hyp2f1",
    "partial_of_one",
    "partial_of_two",
    "partial_of_three",
    "partial_of_four",
}
WITHOUT_DERIVATIVE = {e.name for e in FUNCTIONS.values() if e.derivative == "none"}


@contextmanager
def in_balls(bits: int) -> Iterator[None]:
    with precise(bits), using_namespace(backends.namespace("flint")):
        yield


def called(name: str, operands: Sequence[Any]) -> Any:
    reference = ELEMENTWISE[name]
    given = [Balls(exact(a)) if type(a) is float and a % 1 else a for a in (*reference.before, *reference.then)]
    return FUNCTIONS[name](*given[: len(reference.before)], *operands, *given[len(reference.before) :])


def number(result: Any) -> Number:
    """The single number in a result of any kind."""
    found = concrete(result)
    return found.item() if isinstance(found, Balls) else exact(found if type(found) is float else int(found))


def along(name: str, point: Sequence[Number], order: int = ORDER) -> list[Number]:
    """The derivatives by t, where operand i is point[i] + i*t, counted from 1."""
    jets = [Jet([Balls(x), float(i + 1)], order) for i, x in enumerate(point)]
    result = called(name, jets)
    return [number(c) for c in result.derivatives()] if isinstance(result, Jet) else [number(result)]


def gradient(name: str, point: Sequence[Number]) -> list[Number]:
    leaves = [gradcli.Tensor(Balls(x)).requires_grad_() for x in point]
    result = called(name, leaves)
    if not result.requires_grad:
        return [fmpq(0)] * len(point)
    return [number(g) for g in gradcli.grad(result, leaves, allow_unused=True, materialize_grads=True)]


def proved(compute: Callable[[], list[Number]]) -> list[Number]:
    """The results at the first precision at which all of them have the required digits."""
    for bits in BITS:
        with in_balls(bits):
            try:
                found = compute()
            except UndecidedError:
                continue
            if all(type(x) is fmpq or x.is_exact() or x.rel_accuracy_bits() > DIGITS * math.log2(10) for x in found):
                return found
    raise AssertionError("a ball stays wider than asked")


def holds(x: Number, reference: str) -> bool:
    """Whether a number agrees with the reference to all of its digits."""
    with precise(BITS[-1]):
        wanted = arb(reference)
        return bool(abs(arb(x) - wanted) <= abs(wanted) * arb(f"1e-{DIGITS}"))


def wrong(name: str) -> list[str]:
    """The points where a function does not agree with mpmath."""
    found = []
    for point, numbers in REFERENCES[name]:
        order = ORDERS.get(name, ORDER)
        values, slopes = numbers[: order + 1], numbers[ORDER + 1 :]
        if name in WITHOUT_DERIVATIVE:
            values, slopes = values[:1], []
        series = proved(lambda point=point, order=order: along(name, [*map(from_text, point)], order))
        series += [fmpq(0)] * (len(values) - len(series))
        gradients = proved(lambda point=point: gradient(name, [*map(from_text, point)])) if slopes else []
        pairs = zip([*series, *gradients], [*values, *slopes], strict=True)
        found += [f"{name}{point} {k}: {x} is not {r}" for k, (x, r) in enumerate(pairs) if not holds(x, r)]
    return found


def test_every_elementwise_function_is_here() -> None:
    assert REFERENCES.keys() == ELEMENTWISE.keys()


@pytest.mark.cases(4)
@several("name", NAMES)
def test_digits(name: str) -> None:
    assert not wrong(name)


def test_digits_wait_for_no_precision_that_does_not_come() -> None:
    """A ball that stays too wide is reported, and not taken for the number."""
    with pytest.raises(AssertionError, match="wider than asked"):
        proved(lambda: [arb(1, "1e-80")])


def test_a_wrong_constant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponential, "log_2", lambda: math.log(2))
    assert wrong("exp2")


def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = FUNCTIONS["sinh"].vjp[0]
    monkeypatch.setattr(FUNCTIONS["sinh"], "vjp", (lambda g, y, x: rule(g, y, x) * (1 + Balls(from_text("1e-60"))),))
    assert wrong("sinh")


# --- wide balls: enclosures of the values at all numbers in them

# The radius of a ball relative to its midpoint.
WIDTH = fmpq(1, 200)


def boxes(name: str) -> Iterator[list[tuple[fmpq, fmpq]]]:
    """Midpoints and radii: at the points of the references, and around 0, where many functions have kinks or jumps."""
    for point, _numbers in REFERENCES[name]:
        yield [(from_text(x), abs(from_text(x)) * WIDTH) for x in point]
    if len(REFERENCES[name][0][0]) == 1:
        yield [(fmpq(1, 1000), fmpq(1, 100))]


def inside(box: Sequence[tuple[fmpq, fmpq]], chance: random.Random) -> list[fmpq]:
    return [middle + radius * fmpq(chance.randrange(-1000, 1001), 1000) for middle, radius in box]


@pytest.mark.cases(2)
@several("name", NAMES)
def test_a_wide_ball_holds_what_the_numbers_in_it_give(name: str) -> None:
    chance = random.Random(name)
    for number_of_box, box in enumerate(boxes(name)):
        with in_balls(128):
            try:
                wide = along(name, [arb(to_float(m), to_float(r) * 1.001) for m, r in box], 2)
            except UndecidedError:
                # Around 0 there may be a pole, or a kink in a derivative.
                assert number_of_box == len(REFERENCES[name])
                continue
            for _ in range(5):
                found = along(name, inside(box, chance), 2)
                assert all(arb(w).overlaps(arb(x)) for w, x in itertools.zip_longest(wide, found, fillvalue=fmpq(0)))


# --- exact operands at which floats have infinities, nan or kinks

EDGES = (-math.inf, -5.0, -3.5, -2.0, -1.0, -0.75, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 30.0, math.inf)
PARAMETERS: dict[str, Sequence[Any]] = {
    **{name: [{"n": n} for n in (0, 1, 3)] for name in ("polygamma", "bessel_i", "bessel_j", "sinc", "erfcx", "k0e")},
    **{name: [{"n": n} for n in (0, 1)] for name in ("scaled_i", "dawsn", "ellipk", "ellipe", "hurwitz_zeta")},
    "whole_power": [{"n": n} for n in (-3.0, -2.0, 0.0, 1.0, 2.0, 7.0)],
    "expn": [{"n": n} for n in (-2, 0, 1, 3)],
    **{
        name: [{"n": n} for n in (0, 1, 4)]
        for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn", "sinhc")
    },
    "lambertw": [{"k": k} for k in (0, -1)],
    "flat_root": [{"n": n} for n in (3.0, -0.5)],
}
# Operands where floats have no limit or few digits, or outside the domain of a function.
ELSEWHERE: dict[str, Callable[..., bool]] = {
    "hurwitz_zeta": lambda x, q: x <= 1 or q <= 0 or math.inf in (x, q),
    "scaled_i": lambda x: x < 0 or math.isinf(x),
    "k0e": lambda x: x == 0,
    "ellipk": lambda m: m == 1 or m == -math.inf,
    "ellipe": lambda m: m == 1 or m == -math.inf,
    "yv": lambda v, _x: v < 0,
    **dict.fromkeys(("elliprf", "elliprd", "elliprg", "elliprj", "elliprc"), lambda *x: min(x) <= 0 or math.inf in x),
    **dict.fromkeys(
        ("kv", "kve", "struve", "modstruve"), lambda v, x: v < 0 or x <= 0 or math.isinf(v) or math.isinf(x)
    ),
    **dict.fromkeys(("gammaincinv", "gammainccinv", "stdtrit"), lambda a, y: a <= 0 or a == math.inf or not 0 < y < 1),
    **dict.fromkeys(("betaincinv", "betainccinv"), lambda a, b, y: a <= 0 or b <= 0 or not 0 < y < 1),
    "betaincc": lambda a, b, _x: a <= 0 or b <= 0,
    "stdtr": lambda df, t: df <= 0 or math.inf in (df, abs(t)),
    "owens_t": lambda h, a: math.inf in (abs(h), abs(a)),
    **dict.fromkeys(("ellipkinc", "ellipeinc"), lambda phi, m: math.isinf(phi) or m >= 1 or math.isinf(m)),
    "hyp0f1": lambda b, z: b <= 0 or math.isinf(b) or math.isinf(z),
    **dict.fromkeys(
        ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"), lambda x: x <= 0 or math.isinf(x)
    ),
    **dict.fromkeys(("airyai", "airyaiprime", "airybi", "airybiprime", "shi", "chi", "sinhc"), math.isinf),
    "ci": lambda x: x < 0,
    **dict.fromkeys(("bessel_i", "expn", "y0", "y1"), lambda x: math.isinf(x)),
    **dict.fromkeys(
        ("jv_of_number", "iv", "ive", "ive_slope", "yv"), lambda v, x: v < 0 or math.isinf(v) or math.isinf(x)
    ),
    **dict.fromkeys(
        ("gamma_density", "gammainc", "gammaincc", "digamma_rise", "comb", "perm"), lambda *x: math.inf in x
    ),
}


def edge_cases(entry: Primitive) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for params in PARAMETERS.get(entry.name, [{}]):
        count = sum(p.name not in params for p in entry.parameters)
        values = EDGES if count < 3 else (-1.0, 0.0, 0.5, 1.0, 2.0)
        first = (True, False) if entry.name == "where" else values
        for operands in itertools.product(first, *[values] * (count - 1)):
            if not ELSEWHERE.get(entry.name, lambda *_: False)(*operands):
                yield operands, params


OWN = [
    e
    for e in table.entries()
    if isinstance(e, Primitive) and of_numbers(e.function or e.name) and e.elementwise and e.name not in BY_BALLS
]


@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_edges_are_those_of_floats(entry: Primitive) -> None:
    function = of_numbers(entry.function or entry.name)
    for operands, params in edge_cases(entry):
        if entry.name.startswith("logical"):
            operands = tuple(map(bool, operands))
        expected = entry.forward(floats, *operands, **params)
        with precise(200):
            found = function(*(o if type(o) is bool else exact(o) for o in operands), **params)
        found = found if type(found) is bool else to_float(found)
        close = math.isfinite(found) and abs(found - expected) <= 1e-12 * abs(expected) + 1e-17
        assert found == expected or (math.isnan(found) and math.isnan(expected)) or close, (
            operands,
            params,
            found,
            expected,
        )


# A property that holds for some numbers of a ball only is undecided.
UNDECIDED = (
    ("log", [arb(0, 1)], {}),
    ("sqrt", [arb(0, 1)], {}),
    ("asin", [arb(1, 0.25)], {}),
    ("pow", [fmpq(-1), arb(2, 0.25)], {}),
    ("divide", [fmpq(1), arb(0, 1)], {}),
    ("gamma", [arb(-2, 0.25)], {}),
    ("jv_of_number", [arb(2, 0.25), fmpq(-1)], {}),
    ("hurwitz_zeta", [arb(2, 0.25), fmpq(-1, 3)], {"n": 0}),
    ("rel_entr", [fmpq(0), arb(0, 1)], {}),
    ("betainc", [fmpq(2), fmpq(3), arb(1, 0.25)], {}),
    ("riemann_zeta", [arb(1, 0.25)], {}),
    ("less", [arb(0, 1), fmpq(0)], {}),
)


@pytest.mark.parametrize(
    ("name", "operands", "params"), UNDECIDED, ids=lambda value: value if type(value) is str else ""
)
def test_what_is_not_decided_is_no_answer(name: str, operands: list[Number], params: dict[str, Any]) -> None:
    with precise(128), pytest.raises(UndecidedError):
        of_numbers(name)(*operands, **params)


@pytest.mark.parametrize(
    ("name", "x", "low", "high"),
    [("sign", arb(0, 1), -1, 1), ("floor", arb(2, 0.5), 1, 2), ("abs", arb(0, 1), 0, 1), ("relu", arb(0, 1), 0, 1)],
)
def test_a_ball_around_a_jump_or_a_kink_has_all_values(name: str, x: Number, low: int, high: int) -> None:
    with precise(128):
        found = of_numbers(name)(x)
        assert [found.contains(value) for value in (low - 1, low, high)] == [False, True, True]


# --- what `gradcli ops` says


PUBLIC = [e for entries in table.subjects().values() for e in entries]


def _given(argument: Any) -> Any:
    """An argument of a sample: decimals as balls; counts and names unchanged."""
    if type(argument) is list:
        # Rows of different lengths are not an array.
        with suppress(ValueError):
            array = np.array(argument)
            return Balls(_decimals(array)) if array.dtype.kind == "f" else array
    return Balls(from_text(repr(argument))) if type(argument) is float and abs(argument) % 1 > 0 else argument


_decimals = np.vectorize(lambda x: from_text(repr(float(x))), otypes=[object])


@several(
    "entry",
    [e for e in PUBLIC if e.name not in MISSING_FUNCTIONS and e.samples and not has_complex_sample(e)],
    lambda e: e.name,
)
def test_a_function_has_the_digits_that_ops_says_it_has(entry: Operation) -> None:
    sample = entry.samples[0] if isinstance(entry.samples[0], tuple) else (entry.samples[0],)
    with in_balls(256):
        entry(*map(_given, sample))


@pytest.mark.parametrize("name", sorted(MISSING_FUNCTIONS))
def test_a_function_lacks_the_digits_that_ops_says_it_lacks(name: str) -> None:
    required = [p for p in table.known(name).parameters if p.default is None]
    with in_balls(256), pytest.raises(MissingDigitsError, match="': ball arithmetic has no "):
        table.known(name)(*[_given([2.0, 0.5, 3.0] if name == "roots" else [[2.0, 0.5], [0.5, 3.0]])] * len(required))


@pytest.mark.parametrize("name", sorted(MISSING_FUNCTIONALS))
def test_a_functional_lacks_the_digits_that_ops_says_it_lacks(run: Callable[..., Any], name: str) -> None:
    program, *values = shlex.split(reference.find(name).operation.example or "")
    assert "no proved digits" in run("eval", program, *values, "--digits", "20").err


# The limits of the float range, which some functions mention, and a bound of counts.
_RANGE = {sys.float_info.max, sys.float_info.min, 1e18}


@pytest.mark.cases(2)
@pytest.mark.parametrize("subject", table.subjects())
def test_no_rounded_number_is_hidden_in_a_rule(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats that reach balls are short fractions; irrational numbers and decimals must be constants."""
    hidden = []

    def watched(value: Any) -> Number:
        # Testing whether a number is a float uses the nearest float, which is allowed.
        asked = sys._getframe(1).f_code.co_name == "_is_float"
        if type(value) is float and math.isfinite(value) and abs(value) not in _RANGE and not asked:
            hidden.extend([value] if max(map(abs, value.as_integer_ratio())) > 2**40 else [])
        return exact(value)

    for entry in table.subjects()[subject]:
        for sample in entry.samples:
            with in_balls(256):
                operands = [*map(_given, sample if isinstance(sample, tuple) else (sample,))]
                series = [Jet([x, ones_like(x)], 3) if isinstance(x, Balls) else x for x in operands]
                leaves = [gradcli.Tensor(x).requires_grad_() if isinstance(x, Balls) else x for x in operands]
                monkeypatch.setattr(flint_arrays, "exact", watched)
                # Counts or matrices of a sample may not be valid operands here.
                with suppress(GradcliError, TypeError, AttributeError):
                    made = entry(*series)
                    made.derivatives()
                with suppress(GradcliError, TypeError, AttributeError):
                    gradcli.sum(entry(*leaves)).backward()
                monkeypatch.undo()
        assert not hidden, entry.name


@pytest.mark.parametrize("program", ["iv(1e16, x)", "polygamma(1e300, x)"])
def test_orders_that_take_flint_without_end_are_answered_otherwise(run, program):
    outcome = run("eval", program, "x=1500", "--certify")
    assert outcome.status == 0


@pytest.mark.parametrize(
    ("program", "words", "name"),
    [
        ("kv(v, x)", ["v=0", "x=2.5"], "v"),
        ("kve(v, x)", ["v=0", "x=0.3"], "v"),
        ("stdtr(df, t)", ["df=2.5", "t=0"], "df"),
        ("diff(polylog(s, z), z)", ["s=2.5", "z=0"], "s"),
    ],
)
def test_a_partial_derivative_that_vanishes_is_known_to(run, program, words, name):
    """No precision shows it, and the last one takes ten seconds."""
    outcome = run("eval", program, *words, "--digits", "20", "--json")
    assert (outcome.status, outcome.json["grad"][name]) == (0, "0")


def test_a_bessel_function_of_a_negative_number_needs_the_parity_of_its_order():
    """An order that is too long to be examined counted as not whole, of which the value is undefined."""
    with precise(128), pytest.raises(UndecidedError):
        flint_bessel.iv(fmpq(2**1000), fmpq(-1))
