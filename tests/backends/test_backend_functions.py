"""Every function of the language on every backend, beside NumPy: at the samples of its entry and at the edges."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gradcli import Tensor, arrays, grad
from gradcli.arrays import backends, spellings
from gradcli.arrays.protocol import Compiler, Namespace
from gradcli.errors import BackendError
from gradcli.executors import executor_choice
from gradcli.primitives.bind import bind
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Program, Variable
from tests.namespaces import lacking, lacking_functions, misspelt
from tests.primitives.test_primitives import CASES, PRIMITIVES, Case, data, leaves, total

INF, NAN = math.inf, math.nan
VALUES = np.array(
    [
        0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -0.3, 7.25, 20.5, -20.5, 33.0, 100.3,
        171.7, 1e5, 1e-5, -1e-5, 1e-20, 1e150, -1e150, INF, -INF, NAN, math.pi / 2, 1 - 1e-16, 1 + 1e-15,
    ]
)  # fmt: skip
FEW = np.array([0.0, -0.0, 1.0, -2.5, INF, NAN])
SCALARS = [0.0, 2.0, -1.0, 3.0, INF, NAN]
PARAMETERS = {
    "whole_power": [{"n": n} for n in (0.0, 1.0, 2.0, 3.0, -1.0, -3.0)],
    "polygamma": [{"n": n} for n in (0, 1, 2, 5)],
    "bessel_i": [{"n": n} for n in (0, 1, 2, 3, 6)],
    "bessel_j": [{"n": n} for n in (0, 1, 2, 3, 6)],
    "sinc": [{"n": n} for n in (0, 1, 2)],
    "erfcx": [{"n": n} for n in (0, 1, 2)],
    "flat_root": [{"n": 3.0}],
    "cast": [{"dtype": "float32"}],
}
# Of two equal zeros either may be taken; SciPy and libraries give zeros of either sign.
# Of sums of logarithms that are 0 but for rounding, too.
ANY_ZERO = {
    "maximum",
    "minimum",
    "clip",
    "sign",
    "erfinv",
    "bessel_i",
    "bessel_j",
    "entr",
    "rel_entr",
    "logaddexp2",
    "rgamma",
}
# Where SciPy has no digits, and what is outside the domain.
EXCLUDED = {
    "lgamma": lambda x: np.abs(x - 1) < 1e-6,
    "polygamma": lambda x: x == -INF,
    "bessel_i": lambda x: (np.abs(x) < 1e-19) & (x != 0),
    "bessel_j": lambda x: (np.abs(x) > 1e4) & np.isfinite(x),
    "digamma_rise": lambda x, y: (x < 0) | (y < -x),
    "log_ndtr": lambda x: x > 5,
    "comb": lambda x, k: ~((x >= k) & (k >= 0) & (x < 1e3)),
    "perm": lambda x, k: ~((x >= k) & (k >= 0) & (x < 1e3)),
    "rel_entr": lambda x, y: ~((x >= 0) & (y > 0) & (x < 1e9) & (y < 1e9)),
    "betaln": lambda a, b: (a < 0) | (b < 0) | np.isnan(a) | np.isnan(b) | (a > 1e4) | (b > 1e4),
    # In single precision the reflection of negative operands loses digits.
    "beta": lambda a, b: (
        (np.abs(a) > 1e4) | (np.abs(b) > 1e4) | ((np.result_type(a, b) == np.float32) & ((a < 0) | (b < 0)))
    ),
}
# They are made of logarithms, and have no digits at their own zeros.
WITH_ZEROS = {"betaln", "logaddexp2", "rel_entr"}
# What not every library has.
LACKING = {
    "sqrtm", "logm",
    "y0", "y1", "k0", "k1", "k0e", "k1e", "jv_of_number", "exp1", "expi", "expn", "dawsn", "ellipk", "ellipe", "gammainc",
    "gammaincc", "betainc", "hurwitz_zeta", "i0e", "i1e", "yv", "iv", "ive", "ive_slope", "kv", "kve", "struve", "modstruve",
    "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn", "airyai", "airyaiprime", "airybi", "airybiprime", "erfi",
    "fresnels", "fresnelc", "si", "ci", "shi", "chi", "owens_t", "polylog", "ellipkinc", "ellipeinc", "ellipkm1", "elliprf",
    "elliprd", "elliprg", "elliprc", "elliprj", "hyp0f1", "hyp1f1", "hyperu", "hyp2f1", "gammaincinv", "gammainccinv",
    "betaincc", "betaincinv", "betainccinv", "stdtr", "stdtrit", "partial_of_one", "partial_of_two", "partial_of_three",
    "partial_of_four", "elliptic_p",
}  # fmt: skip
# They are sums of many terms, and are compared at their samples alone.
LONG = {"scaled_i", "riemann_zeta", "lambertw", "gamma_density", "sinhc", "eisenstein"}
ELEMENTWISE = [p for p in PRIMITIVES if p.elementwise and p.name not in LACKING | LONG]


def test_a_namespace_has_what_every_library_must_have(xp):
    backend = backends.of_namespace(xp)
    compiles = backend is not None and backend.executor == "whole_program"
    assert lacking(xp, Compiler if compiles else Namespace) == []
    assert set(lacking_functions(xp)) <= LACKING


def operands_of(primitive: Primitive) -> Sequence[Any]:
    sample = primitive.samples[0]
    count = 1 if primitive.name in PARAMETERS or not isinstance(sample, tuple) else len(sample)
    if primitive.name == "where":
        return np.array([[[True]], [[False]]]), FEW[:, None], FEW
    if primitive.name in ("leaky_relu", "elu"):
        count = 2
    return (
        [VALUES]
        if count == 1
        else [VALUES[:, None], VALUES]
        if count == 2
        else [VALUES[:, None, None], FEW[:, None], FEW]
    )


def assert_alike(primitive: Primitive, xp: Any, operands: Sequence[Any], params: dict[str, Any]) -> None:
    if primitive.name.startswith("logical"):
        operands = [np.asarray(o) > 0 if isinstance(o, np.ndarray) else o > 0 for o in operands]
    expected = np.asarray(bind(primitive, operands, params))
    moved = [xp.from_numpy(o) if isinstance(o, np.ndarray) else o for o in operands]
    result = bind(primitive, moved, params)
    assert xp.owns(result)
    found = xp.to_numpy(result)
    assert found.dtype == expected.dtype
    if primitive.name in EXCLUDED:
        kept = ~np.broadcast_to(EXCLUDED[primitive.name](*operands), expected.shape)
        found, expected = found[kept], expected[kept]
    np.testing.assert_allclose(found, expected, rtol=2e-11, atol=2e-15 if primitive.name in WITH_ZEROS else 0)
    if expected.dtype.kind == "f" and primitive.name not in ANY_ZERO:
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


# JAX compiles each operation for each shape, which takes nearly all the time of these tests.
@pytest.mark.cases(100, jax=12)
@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=lambda p: p.name)
def test_the_edges_are_those_of_numpy(primitive: Primitive, xp: Any) -> None:
    operands = operands_of(primitive)
    for params in PARAMETERS.get(primitive.name, [{}]):
        assert_alike(primitive, xp, operands, params)
        if len(operands) == 2:
            for scalar in SCALARS:
                assert_alike(primitive, xp, (VALUES, scalar), params)
                assert_alike(primitive, xp, (scalar, VALUES), params)


def unless_lacking(test: Any) -> Any:
    """A test of functions some of which only NumPy and SciPy have: elsewhere they are an error that says so."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        try:
            test(*arguments, **named)
        except spellings.MissingFunctionError as error:
            if error.message.split("'")[1] not in LACKING or error.hint != "the backend numpy has it":
                raise

    return run


@pytest.mark.cases(600, jax=60)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
@unless_lacking
def test_samples(case: Case, dtype: str, xp: Any) -> None:
    """The value, and the gradients of a weighted sum of it."""
    if not case.operands or case.entry.name in ("eigenvectors", "orthonormal", "left_vectors", "right_vectors"):
        return
    given = leaves(case.operands, dtype)
    moved = [leaf(xp.asarray(arrays.to_numpy(o.inner))) for o in given]
    expected, found = case.call(*given), case.call(*moved)
    tolerance = {"rtol": 1e-9, "atol": 1e-13} if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-5}
    np.testing.assert_allclose(on_host(found), data(expected), **tolerance)
    if case.entry.derivative == "none":
        return
    wanted, gradients = (grad(total(case, leaves), leaves, allow_unused=True) for leaves in (given, moved))
    for w, g in zip(wanted, gradients):
        assert (g is None) == (w is None)
        if w is not None and g is not None:
            assert xp.owns(g.inner)
            assert g.dtype == w.dtype
            np.testing.assert_allclose(on_host(g), data(w), **tolerance)


def leaf(array: Any) -> Any:
    return Tensor(array).requires_grad_()


def on_host(value: Any) -> Any:
    return arrays.to_numpy(value.inner if isinstance(value, Tensor) else value)


# --- functions that a library lacks


def test_a_function_that_a_library_lacks_is_refused(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    unknown = elementwise("sharpness", "x", "of which nothing is known", vjp=None, derivative="none")
    with pytest.raises(BackendError, match=r"the backend \w+ has no function 'sharpness'"):
        unknown(xp.asarray(VALUES))
    x, y = Variable((3,), "float64"), Variable((3,), "float64")
    with pytest.raises(BackendError, match=r"the backend \w+ has no function 'sharpness'"):
        executor_choice.require_functions(Program((x,), (Equation(unknown, (x,), {}, y),), (y,)), xp)


def test_a_function_that_a_library_lacks_may_be_defined_in_others(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "_declared", dict(spellings._declared))
    twice = elementwise("twice", "x", "2*x", fallback=lambda xp, x: xp.add(x, x), vjp=None, derivative="none")
    for found in (twice(xp.asarray(VALUES)), twice(VALUES), [twice(float(x)) for x in VALUES]):
        np.testing.assert_array_equal(on_host(found), 2 * VALUES)


@pytest.mark.parametrize("library", ["torch", "jax", "cupy"])
def test_a_spelling_is_that_of_a_function(library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    assert misspelt(library) == []
