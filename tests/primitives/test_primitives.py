"""Tests every entry of the table at its own samples: a new entry is tested without a new test.

A sample is a tuple of arguments, or a single argument. Floats and lists of floats in it are operands, which are
differentiated; everything else is a parameter or a constant.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradcli import Tensor, arrays, grad, limits, tensor
from gradcli.errors import LimitError
from gradcli.kinds.batch import Batched, new_batch_id, unbatched
from gradcli.primitives import bind, jet_rules, table
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries import linear, powers, shape
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.primitives.entries.exponential import exp
from gradcli.primitives.entries.linear_algebra import decompositions
from gradcli.primitives.entries.manipulation import creation
from gradcli.primitives.families import elementwise
from gradcli.primitives.operation import Composite, Operation
from gradcli.primitives.primitive import Primitive
from tests.namespaces import LIBRARIES, misspelt
from tests.samples import at_each, several

ENTRIES = table.entries()
PRIMITIVES = tuple(e for e in ENTRIES if isinstance(e, Primitive))
# Entries that need a keyword or parameters that only other entries make, or return several tensors.
WITHOUT_SAMPLES = {
    "contract", "rand", "randn", "qr", "eigh", "size", "item", "topk", "kthvalue", "aminmax", "split_with_sizes", "broadcast_tensors", "index_put", "var_mean", "std_mean", "cummax", "cummin", "is_complex", "split", "chunk", "unbind", "meshgrid",
    "nonzero", "slogdet", "lstsq", "svd", "lu", "lu_factor", "array_split", "vsplit", "hsplit", "dsplit", "airy", "fresnel", "sici", "shichi",
    # Their results are complex, or their operands; `test_fourier`, `test_complex_matrices` and `test_polynomials` have their tests.
    "eigvals", "eigenbasis", "eig", "determinant_phase", "phased_right_vectors", "polynomial_roots", "roots",
    "fourier", "half_fourier", "inverse_half_fourier", "fft", "ifft", "rfft", "irfft", "hfft", "ihfft",
    *(name + over for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for over in "2n"),
}  # fmt: skip
# Parameters that may be floats.
PARAMETERS = {"n", "ord", "p"}
# Functions whose second argument is not an operand either.
WITH_A_SHARE = {"quantile", "percentile"}
# Functions whose arguments are all parameters.
CREATION = {e for e in table.subjects()["creation"] if e.derivative == "none"}
CREATION_BY_SHAPE = [e for e in table.subjects()["creation"] if not isinstance(e, Primitive) and e.samples]
# Linear functions whose result is a number for any operands, including booleans.
COUNTED = {"add", "subtract", "negative", "zeros_like", "ones_like", "sum", "mean", "cumsum", "cast"}
# Functions whose work exceeds that of their elements.
DECOMPOSITIONS = {
    "inv", "det", "logdet", "solve", "cholesky", "eigenvectors", "eigvalsh", "svdvals", "orthonormal", "pinv",
    "matrix_exp", "sqrtm", "logm", "log_magnitude", "determinant_sign", "left_vectors", "right_vectors", "paired_values",
}  # fmt: skip
WORKING = {
    *DECOMPOSITIONS,
    "positions_in_order",
    "matmul",
    "contract",
    "sort",
    "sort_by",
    "unsort_by",
    "order_statistic",
}
# Functions with an integer operand.
OF_WHOLE_ORDER = {
    "polygamma", "expn", "lambertw", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn",
}  # fmt: skip
# Numbers at which elementwise functions are tested, plain and in an array.
NUMBERS = [0.0, 5e-324, 2.2e-308, 1e-300, 0.5, 1.0, 2.5, 800.0, 1e308, np.inf]
NUMBERS = [*NUMBERS, *(-n for n in NUMBERS), np.nan]


# Functions of numbers only.
ALIKE = [e for e in PRIMITIVES if e.elementwise and e.signature in ("x", "x, y", "x, q", "a, b")]


class Case(NamedTuple):
    """An entry at a sample; `call(*operands)` is its value, also for other operands of the same shapes."""

    entry: Operation
    call: Callable[..., Any]
    operands: tuple[Any, ...]
    id: str = ""


class Slot(NamedTuple):
    """The position of an operand among the arguments."""

    number: int


def is_float_data(value: Any) -> bool:
    return all(map(is_float_data, value)) if isinstance(value, list) and value else isinstance(value, float)


def as_array(value: Any) -> Any:
    return np.array(value) if isinstance(value, list) else value


def as_real(value: Any) -> Any:
    """A real number that depends on both parts of a complex value."""
    if (isinstance(value, Kind) or arrays.is_array(value)) and arrays.is_complex(value):
        return real(value) + 2.0 * imag(value)
    return value


def case_of(entry: Operation, sample: Any, id: str = "") -> Case:
    arguments = sample if isinstance(sample, tuple) else (sample,)
    parameters = entry.parameters
    operands: list[Any] = []

    def slot(value: Any) -> Slot:
        operands.append(as_array(value))
        return Slot(len(operands) - 1)

    def placed(parameter: Any, argument: Any) -> Any:
        if parameter.name == "tensors" and not parameter.variadic:
            return [slot(a) for a in argument]
        is_share = parameter.name == "q" and entry.name in WITH_A_SHARE
        if is_float_data(argument) and parameter.name not in PARAMETERS and not is_share and entry not in CREATION:
            return slot(argument)
        return as_array(argument)

    repeated = itertools.chain(parameters, itertools.repeat(parameters[-1]))
    template = [placed(parameter, argument) for parameter, argument in zip(repeated, arguments)]

    def call(*values: Any) -> Any:
        def filled(part: Any) -> Any:
            if isinstance(part, Slot):
                return values[part.number]
            return [filled(p) for p in part] if isinstance(part, list) else part

        return as_real(entry(*map(filled, template)))

    return Case(entry, call, tuple(operands), id)


CASES = [case_of(entry, sample, f"{entry.name}-{i}") for entry in ENTRIES for i, sample in enumerate(entry.samples)]
DIFFERENTIABLE = [c for c in CASES if c.entry.derivative != "none" and c.operands]
WITH_OPERANDS = [c for c in CASES if c.operands]
ELEMENTWISE = [c for c in CASES if getattr(c.entry, "elementwise", False)]

every_case = at_each(CASES)
every_differentiable_case = at_each(DIFFERENTIABLE)
every_entry = several("entry", ENTRIES, lambda e: e.name)


def leaves(operands: Sequence[Any], dtype: str | None = None) -> list[Tensor]:
    return [tensor(o, dtype=dtype, requires_grad=True) for o in operands]


def leaf(value: Any) -> Tensor:
    return Tensor(value).requires_grad_()


def data(value: Any) -> np.ndarray:
    """The numbers of a value, whether it is a Tensor, an array or a number."""
    return np.asarray(value.detach() if isinstance(value, Tensor) else value)


def weights(value: Any, seed: int = 0) -> Any:
    """Random numbers in the shape of a value."""
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, arrays.shape(value))
    return drawn if drawn.ndim else float(drawn)


def total(case: Case, operands: Sequence[Any]) -> Any:
    """The value as one number: its elements weighted and summed."""
    value = case.call(*operands)
    weighted = value * weights(value)
    return weighted.sum() if arrays.shape(value) else weighted


def slope(case: Case, operands: Sequence[Any]) -> Any:
    """The gradients of `total` as one number, weighted and summed, with its graph."""
    given = [o for o in operands if isinstance(o, Tensor)]
    found = grad(total(case, operands), given, create_graph=True, allow_unused=True)
    weighted = [g * weights(g, 1 + i) for i, g in enumerate(found) if g is not None]
    return sum((w.sum() if w.shape else w for w in weighted), tensor(0.0))


def gradients(value: Tensor, operands: Sequence[Tensor]) -> list[np.ndarray]:
    if not value.requires_grad:
        return [np.zeros(o.shape) for o in operands]
    found = grad(value, operands, allow_unused=True)
    return [np.zeros(o.shape) if g is None else data(g) for g, o in zip(found, operands)]


def differences(function: Callable[..., Any], operands: Sequence[Any], directions: Sequence[Any]) -> np.ndarray:
    """The derivatives of a number along directions: central differences, extrapolated twice to step 0.

    A direction has a step for each element of each operand. The number is computed in one call at all points: they are
    the rows of a batch, and tests/kinds/test_batch.py compares batches with their rows.
    """
    nesting = new_batch_id()
    steps = np.multiply.outer(4e-3 / 2.0 ** np.arange(3), [1.0, -1.0])

    def moved(operand: Any, towards: np.ndarray) -> Batched:
        points = np.asarray(operand, dtype=float) + np.multiply.outer(steps, towards)
        return Batched(points.reshape(-1, *np.shape(operand)), nesting)

    points = [moved(o, np.array([d[i] for d in directions])) for i, o in enumerate(operands)]
    found = function(points)
    rows = unbatched(found.inner if isinstance(found, Tensor) else found, nesting, steps.size * len(directions))
    values = np.reshape(rows, (*steps.shape, len(directions)))
    coarse, middle, fine = (values[:, 0] - values[:, 1]) / (2 * steps[:, :1])
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return np.asarray((16 * second - first) / 15)


def differences_by_elements(function: Callable[..., Any], operands: Sequence[Any]) -> list[np.ndarray]:
    """The derivatives of a number by every element of every operand."""
    sizes = [np.size(o) for o in operands]
    units = np.eye(sum(sizes))
    columns = np.split(units, np.cumsum(sizes)[:-1], axis=1)
    directions = [*zip(*(c.reshape(-1, *np.shape(o)) for c, o in zip(columns, operands)))]
    found = differences(function, operands, directions)
    return [f.reshape(np.shape(o)) for f, o in zip(np.split(found, np.cumsum(sizes)[:-1]), operands)]


def assert_first_derivative(case: Case) -> None:
    operands = leaves(case.operands)
    expected = differences_by_elements(lambda points: total(case, [*map(Tensor, points)]), case.operands)
    for found, wanted in zip(gradients(total(case, operands), operands), expected):
        np.testing.assert_allclose(found, wanted, rtol=2e-8, atol=2e-9)


def assert_second_derivative(case: Case) -> None:
    """By each operand along one direction: differences by every element would take most of the time of the tests."""
    operands = leaves(case.operands)
    random = np.random.default_rng(11)
    for i, gradient in enumerate(gradients(slope(case, operands), operands)):
        way = random.uniform(0.3, 1.0, gradient.shape) * random.choice([-1.0, 1.0], gradient.shape)

        ways = [way if i == j else np.zeros(np.shape(o)) for j, o in enumerate(case.operands)]
        (expected,) = differences(lambda points: slope(case, [*map(leaf, points)]), case.operands, [ways])
        np.testing.assert_allclose((gradient * way).sum(), expected, rtol=2e-8, atol=2e-9)


# --- metadata of entries


@pytest.mark.all_cases
@every_entry
def test_it_is_described(entry):
    for text in (entry.doc, entry.derivative, entry.domain):
        assert text
        assert text == text.strip()
        assert "\n" not in text
        assert not text.endswith(".")
    assert entry.parameters


@pytest.mark.all_cases
@every_entry
def test_it_has_samples(entry):
    assert bool(entry.samples) != (entry.name in WITHOUT_SAMPLES)


@pytest.mark.all_cases
@several("entry", PRIMITIVES, lambda e: e.name)
def test_a_primitive_has_every_rule(entry):
    # Kinds with these rules apply the definition instead.
    assert callable(entry.jet) == callable(entry.batch) == (entry.definition is None)
    assert callable(entry.elements)
    if isinstance(entry.vjp, tuple):
        assert all(rule is None or callable(rule) for rule in entry.vjp)
    else:
        assert callable(entry.vjp) if entry.variadic else entry.vjp is None
    assert (entry.derivative == "none") == (entry.vjp is None)


# Output languages whose functions cannot be looked up.
LANGUAGES = ("c", "cuda", "latex", "polars", "sql")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_spelling_is_a_name(language):
    spelled = [entry.spelling[language] for entry in PRIMITIVES if language in entry.spelling]
    assert spelled
    assert all(spelled)


@pytest.mark.cases(2)
@pytest.mark.parametrize("library", ["numpy", "standard", "scipy", "sympy"])
def test_a_spelling_is_that_of_a_function(library):
    assert misspelt(library) == []


def test_spellings_are_of_languages_that_are_known():
    assert {language for entry in PRIMITIVES for language in entry.spelling} <= {*LANGUAGES, *LIBRARIES}


@pytest.mark.parametrize("entry", [e for e in PRIMITIVES if e.parity], ids=lambda e: e.name)
def test_an_odd_or_even_function_is_one(entry):
    x = np.array([0.2, 0.7, 0.95])
    np.testing.assert_array_equal(data(entry(-x)), data(entry(x)) * (-1 if entry.parity == "odd" else 1))


def _is_flat(entry: Primitive, place: int) -> bool:
    """Whether an elementwise function is constant, or infinite, along an interval of one operand."""
    along, elsewhere = np.linspace(-3.9876, 4.0123, 81), (0.4, 1.7, -1.3)
    for others in itertools.product(elsewhere, repeat=len(entry.parameters) - 1):
        found = data(entry(*others[:place], along, *others[place:]))
        if ((found[1:] == found[:-1]).mean() > 0.05) and np.unique(found).size > 1:
            return True
    return False


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "entry",
    [e for e in PRIMITIVES if e.elementwise and e.vjp and not e.internal and e.name not in OF_WHOLE_ORDER],
    ids=lambda e: e.name,
)
def test_a_function_that_is_a_number_over_a_range_says_so(entry):
    """Formulas rely on it: only formulas with such functions can equal a number at more than single points."""
    flat = any(_is_flat(entry, place) for place in range(len(entry.parameters)))
    assert not flat or entry.selects or entry.piecewise


@pytest.mark.parametrize("entry", [e for e in PRIMITIVES if e.commutative], ids=lambda e: e.name)
def test_the_operands_of_a_commutative_function_may_be_exchanged(entry):
    x, y = np.random.default_rng(0).standard_normal((2, 100))
    np.testing.assert_array_equal(data(entry(x, y)), data(entry(y, x)))


@pytest.mark.parametrize("entry", [e for e in PRIMITIVES if e.reduces], ids=lambda e: e.name)
def test_a_reduction_joins_elements_two_by_two(entry):
    x, y = (0.7, -1.3) if entry.differentiable(1) else (True, False)
    count = 2 if entry.name == "mean" else 1
    np.testing.assert_array_equal(data(entry(np.array([x, y]))) * count, data(entry.reduces(x, y)))


@pytest.mark.parametrize("entry", [e for e in PRIMITIVES if e.rounds_alike], ids=lambda e: e.name)
def test_what_rounds_alike_gives_the_same_bits_for_numbers(entry):
    arity = len(entry.vjp or entry.parameters)
    within = np.random.default_rng(0).uniform(0.1, 3.0, (arity, 33))
    columns = np.concatenate([within, np.array([*itertools.product(NUMBERS, repeat=arity)]).T], axis=1)
    params = {"dtype": "float32"} if entry.name == "cast" else {}
    expected = data(bind.bind(entry, list(columns), params))
    found = np.array([data(bind.bind(entry, [float(x) for x in row], params)) for row in columns.T], expected.dtype)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))


def test_what_moves_elements_takes_them_as_they_are():
    for entry in PRIMITIVES:
        assert not entry.moves or (entry.truths and not entry.elementwise)


def test_every_name_and_alias_is_unique():
    names = [n for operations in table.subjects().values() for o in operations for n in (o.name, *o.aliases)]
    assert len(names) == len(set(names))
    assert set(names) == set(table.names())


def test_every_name_finds_its_function():
    for operations in table.subjects().values():
        for operation in operations:
            assert operation in ENTRIES
            assert all(table.find(n) is operation for n in (operation.name, *operation.aliases))
    assert table.find("no such function") is None


def test_a_file_imports_functions_only_from_files_before_it_in_the_table():
    """So that the first file with a function is the one that makes it."""
    found: set[Operation] = set()
    for module in (*table._AT_START, *map(table._load, table._LATER)):
        public = {name: o for name, o in vars(module).items() if isinstance(o, Operation) and not o.internal}
        imports = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom))
        imported = {alias.asname or alias.name for node in imports for alias in node.names}
        assert found.issuperset(public[name] for name in imported & public.keys())
        found.update(public.values())


@pytest.mark.parametrize("fingerprint", [None, "00"])
def test_the_index_is_computed_where_none_fits(monkeypatch, fingerprint):
    index = ModuleType("_entry_files")
    exec(table.prepared_text(), vars(index))
    expected = index.files
    if fingerprint is not None:
        index.fingerprint, index.files = fingerprint, {}
    monkeypatch.setitem(sys.modules, "gradcli.primitives._entry_files", index if fingerprint else None)
    monkeypatch.setattr(table, "_prepared", table._prepared.__wrapped__)
    assert table._files.__wrapped__() == expected


@pytest.mark.parametrize("file", ["layers.losses", "layers.of_before", None])
def test_a_function_is_found_where_the_index_has_another_file_or_none(monkeypatch, file):
    monkeypatch.setattr(table, "_BY_NAME", {})
    monkeypatch.setattr(table, "_prepared", lambda: {"files": {"erfcx": file} if file else {}})
    monkeypatch.setattr(table, "_files", table._computed_files)
    found = table.find("erfcx")
    assert found is not None
    assert found.name == "erfcx"


def test_a_function_is_found_without_reading_all_files(monkeypatch):
    files = table._files()
    monkeypatch.setattr(table, "_BY_NAME", {})
    monkeypatch.setattr(table, "_prepared", lambda: {"files": files})
    monkeypatch.setattr(table, "_files", None)
    assert table.known("erfcx").name == "erfcx"


# --- values


@pytest.mark.all_cases
@every_case
def test_the_value_is_finite(case):
    assert np.isfinite(data(case.call(*case.operands))).all()
    assert np.isfinite(data(case.call(*leaves(case.operands)))).all()


@every_case
def test_arrays_and_tensors_give_the_same_value(case):
    plain, recorded = case.call(*case.operands), case.call(*leaves(case.operands))
    assert arrays.shape(plain) == arrays.shape(recorded)
    np.testing.assert_array_equal(data(plain), data(recorded))
    assert isinstance(recorded, Tensor) == bool(case.operands)


class Made(NamedTuple):
    """One application of a primitive: its charge, the size of its result, and the shapes of its operands."""

    primitive: Primitive
    charged: int
    size: int
    operands: tuple[tuple[int, ...], ...]


@pytest.fixture
def made(monkeypatch):
    """Records every application of a primitive to arrays; a limit is set, so that each is charged."""
    seen: list[Made] = []
    compute = bind.apply_to_arrays

    def counted(primitive: Primitive, operands: Sequence[Any], params: Any) -> Any:
        shapes = tuple(map(arrays.shape, operands))
        budget = limits.budget()
        assert budget is not None
        left = budget.elements
        result = compute(primitive, operands, params)
        charged = left - budget.elements
        parts = result if isinstance(result, list) else [result]
        seen.append(Made(primitive, charged, sum(math.prod(arrays.shape(p)) for p in parts), shapes))
        return result

    monkeypatch.setattr(bind, "apply_to_arrays", counted)
    with limits.within(max_elements=10**9):
        yield seen


def assert_all_is_charged(made: Sequence[Made]) -> None:
    """Assert that the elements of the result, by their time, and a share of the operands are charged."""
    for primitive, charged, size, shapes in made:
        largest = max((math.prod(s) for s in shapes), default=1)
        if primitive.view is not None:
            assert charged in (0, size), primitive
        elif primitive.elementwise or primitive.moves:
            # Some numbers take longer than others.
            assert charged == size * primitive.time or (primitive.surcharge and charged > size), primitive
        elif primitive.name in WORKING:
            assert charged >= size, primitive
        else:
            assert charged >= size + largest // 4 or charged == largest * primitive.time >= size, primitive


@every_case
def test_the_number_of_elements_is_known_beforehand(case, made):
    operands = leaves(map(np.atleast_1d, case.operands))
    value = case.call(*operands)
    if isinstance(case.entry, Primitive) and operands:
        assert case.entry in [one.primitive for one in made]
    if operands and value.requires_grad:
        grad(value, operands, np.ones(value.shape), allow_unused=True)
    assert_all_is_charged(made)


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "entry", [e for e in PRIMITIVES if e.name == "matmul" or e.name in DECOMPOSITIONS], ids=lambda e: e.name
)
def test_the_work_of_large_matrices_is_known_beforehand(entry, made):
    def charged(n: int) -> int:
        entry(*[np.eye(n) * np.linspace(1.0, 2.0, n) + 0.001] * len(entry.parameters))
        return made[-1].charged

    assert charged(200) > 5 * charged(100) > 0
    assert_all_is_charged(made)


def test_the_work_of_a_contraction_is_known_beforehand(made):
    def charged(n: int) -> int:
        linear.einsum("ij,jk,k->i", np.ones((3 * n, n)), np.ones((n, 5 * n)), np.ones(5 * n))
        return made[-1].charged

    # The matrices are never multiplied: the other operand is summed first.
    assert charged(400) - charged(200) == 600 + (5 + 3) * (400**2 - 200**2) // 16


@pytest.mark.parametrize("entry", [p for p in PRIMITIVES if p.elementwise], ids=lambda e: e.name)
def test_an_elementwise_function_makes_what_its_operands_broadcast_to(entry):
    count = len(entry.parameters)
    for shapes in itertools.permutations([(2, 1), (4,), (), (3, 1, 1)][:count]):
        assert entry.elements(shapes, {}) == math.prod(np.broadcast_shapes(*shapes))


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [
        *((e, s if isinstance(s, tuple) else (s,)) for e in CREATION_BY_SHAPE for s in e.samples),
        (partial(creation.rand, seed=0), (2, 3)),
        (partial(creation.randn, seed=0), (2, 3)),
    ],
)
def test_what_is_made_of_parameters_alone_is_charged(entry, arguments):
    size = math.prod(arrays.shape(entry(*arguments)))
    with limits.within(max_elements=size - 1), pytest.raises(LimitError):
        entry(*arguments)
    # Functions with several steps are charged several times.
    with limits.within(max_elements=5 * size):
        entry(*arguments)


@pytest.mark.parametrize("entry", ALIKE, ids=lambda e: e.name)
def test_plain_floats_and_arrays_agree_everywhere(entry):
    arity = len(entry.parameters)
    # Differences of log-gamma functions cancel.
    rtol = 1e-12 if entry.name == "betaln" else 2e-14
    for numbers in itertools.product(NUMBERS if arity == 1 else NUMBERS[::3], repeat=arity):
        plain, array = leaves(numbers), leaves([[n] for n in numbers])
        one, other = entry(*plain), entry(*array)
        np.testing.assert_allclose([data(one)], data(other), rtol=rtol, atol=0)
        if one.requires_grad:
            by_numbers = grad(one, plain, allow_unused=True)
            by_arrays = grad(other, array, tensor([1.0]), allow_unused=True)
            for by_number, by_array in zip(by_numbers, by_arrays):
                if by_number is not None:
                    np.testing.assert_allclose([data(by_number)], data(by_array), rtol=rtol, atol=0)


@pytest.mark.parametrize("x", [5e-324, 2.2e-308, -1e-290, 1e290, -1.7e308])
def test_cube_roots_are_those_of_arrays_to_the_ends_of_the_range(x):
    np.testing.assert_array_max_ulp(data(powers.cbrt(x)), data(powers.cbrt(np.array([x])))[0], 1)


# --- derivatives


@pytest.mark.all_cases
@every_differentiable_case
def test_the_first_derivative(case):
    assert case.call(*leaves(case.operands)).requires_grad
    assert_first_derivative(case)


@pytest.mark.cases(6)
@every_differentiable_case
def test_the_second_derivative(case):
    assert_second_derivative(case)


def test_the_check_of_derivatives_finds_a_wrong_rule():
    def wrong(rule: Callable[..., Any]) -> Case:
        entry = elementwise("wrong", "x", "exp", forward=lambda xp, x: xp.exp(x), vjp=(rule,), derivative="g*exp(x)")
        return case_of(entry, [0.3, 0.7])

    assert_first_derivative(wrong(lambda g, y, _x: g * y))
    for rule in (lambda g, y, _x: g * y * (1 + 1e-6), lambda g, _y, x: g * (exp(x) + 1e-7), lambda g, _y, _x: g):
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            assert_first_derivative(wrong(rule))


@pytest.mark.parametrize(
    ("entry", "sample"),
    [
        (decompositions.qr, [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]),
        (decompositions.qr, [[1.0, 0.5, 3.0], [2.0, -1.0, 0.25]]),
        (decompositions.qr, [[[2.0, 0.5], [-1.0, 3.0]], [[1.0, 0.5], [0.25, 2.0]]]),
        (decompositions.eigh, [[2.0, 0.5], [0.5, 3.0]]),
        (decompositions.eigh, [[[2.0, 0.5], [0.5, 3.0]], [[1.0, 0.2], [0.2, -2.0]]]),
    ],
)
def test_the_derivatives_of_functions_that_give_several_tensors(entry, sample):
    def joined(x: Any) -> Any:
        return shape.concat([shape.ravel(part) for part in entry(x)])

    case = case_of(Composite("joined", "x", "all its parts", joined, derivative="-"), [sample])
    assert_first_derivative(case)
    assert_second_derivative(case)


@every_differentiable_case
def test_each_operand_by_itself_has_the_same_gradient(case):
    operands = leaves(case.operands)
    together = gradients(total(case, operands), operands)
    for i, expected in enumerate(together):
        alone = [tensor(o, requires_grad=i == j) for j, o in enumerate(case.operands)]
        np.testing.assert_allclose(gradients(total(case, alone), [alone[i]])[0], expected, rtol=1e-14)


@every_differentiable_case
def test_a_constant_in_place_of_another_operand_has_no_influence_on_the_gradient(case):
    operands = leaves(case.operands)
    together = gradients(total(case, operands), operands)
    for i, expected in enumerate(together):
        mixed = [leaves([o])[0] if i == j else o for j, o in enumerate(case.operands)]
        np.testing.assert_allclose(gradients(total(case, mixed), [mixed[i]])[0], expected, rtol=1e-14)


@every_differentiable_case
def test_a_cotangent_of_zero_gives_zero(case):
    operands = leaves(case.operands)
    value = case.call(*operands)
    for g in grad(value, operands, tensor(np.zeros(value.shape)), allow_unused=True):
        assert g is None or not data(g).any()


@at_each(c for c in WITH_OPERANDS if c.entry.derivative == "none")
def test_where_there_is_no_derivative_there_is_no_graph(case):
    value = case.call(*leaves(case.operands))
    assert (value.requires_grad, value.grad_fn) == (False, None)


@pytest.mark.parametrize(
    "entry",
    [e for e in PRIMITIVES if e.elementwise and isinstance(e.vjp, tuple) and None in e.vjp],
    ids=lambda e: e.name,
)
def test_an_operand_without_influence_gets_none(entry):
    operands = leaves([1.0] * len(entry.vjp))
    found = grad(entry(*operands), operands, allow_unused=True)
    assert [g is None for g in found] == [rule is None for rule in entry.vjp]


KINKED = [c for c in CASES if getattr(c.entry, "smooth", None) is not None and c.entry.vjp is not None]


@at_each(KINKED)
def test_the_samples_are_smooth_points(case):
    node = case.call(*leaves(case.operands)).grad_fn
    assert node.primitive is case.entry
    assert case.entry.smooth(*map(data, node.saved), **node.params)


# Points at which functions with a restricted domain are differentiable; others are differentiable everywhere.
PROPER: dict[str, Callable[..., bool]] = {
    "clip": lambda _x, low, high: low < high,
    "atan2": lambda y, x: y != 0 or x >= 0,
    "betaln": lambda a, b: a > 0 and b > 0,
    "xlogy": lambda _x, y: y > 0,
    "entr": lambda x: x > 0,
    "comb": lambda x, k: x > k > 0,
    "perm": lambda x, k: x > k > 0,
    "rel_entr": lambda x, y: x > 0 and y > 0,
    "xlog1py": lambda _x, y: y > -1,
    "gamma_density": lambda a, x: a > 0 and x > 0,
    "hurwitz_zeta": lambda x, q: x > 1 and q > 0,
    "scaled_i": lambda x: x > 0,
    "partial_of_three": lambda a, b, x: a > 0 and b > 0 and 0 < x < 1,
    "partial_of_four": lambda w, x, y, z: min(w, x, y) > 0 and z < 1,
    **dict.fromkeys(("struve", "modstruve"), lambda _v, x: x > 0),
    "polylog": lambda _s, z: -1 < z < 1,
    "elliprc": lambda x, y: x > 0 and y > 0,
    "hyp1f1": lambda _a, b, _x: b > 0,
    "hyperu": lambda _a, _b, x: x > 0,
    **dict.fromkeys(("betaincc", "betaincinv", "betainccinv"), lambda a, b, y: a > 0 and b > 0 and 0 < y < 1),
    "betainc": lambda *numbers: min(numbers) > 0 and numbers[-1] < 1,
    **dict.fromkeys(("gammaincinv", "gammainccinv", "stdtrit"), lambda a, y: a > 0 and 0 < y < 1),
    "stdtr": lambda df, _t: df > 0,
    "hyp2f1": lambda a, b, c, z: min(a, b, c) > 0 and z < 1,
    "elliprj": lambda *numbers: min(numbers) > 0,
}
# Functions that are undefined, or jump, at a zero matrix.
REGULAR = {
    "left_vectors",
    "right_vectors",
    "paired_values",
    "eigenvectors",
    "orthonormal",
    "inv",
    "solve",
    "cholesky",
    "pinv",
}


def points(case: Case) -> list[list[Any]]:
    """Operands shaped like those of a case, with equal elements, at zeros, ties and integers."""
    proper = PROPER.get(case.entry.name, lambda *_numbers: True)
    count = len(case.operands)
    # Partial derivatives that only balls provide take long, and have no kinks.
    choices = [0.5, 2.5] if case.entry.name.startswith("partial_of_") else [0.0, 1.0, -1.0, 0.5, 2.5]
    numbers = itertools.product(choices, repeat=count) if case.entry.elementwise else [[0.0] * count]
    return [
        [np.full(np.shape(o), n) if np.ndim(o) else n for o, n in zip(case.operands, ns)]
        for ns in numbers
        if proper(*ns)
    ]


def has_kink(case: Case, operands: Sequence[Any]) -> bool:
    """Whether the slopes of a function on both sides of a point differ, or it jumps there."""
    random = np.random.default_rng(7)
    ways = [random.uniform(0.5, 1.5, np.shape(o)) * random.choice([-1, 1], np.shape(o)) for o in operands]
    with arrays.quiet():
        below, here, above = (
            data(total(case, [o + h * w for o, w in zip(operands, ways)])) for h in (-1e-6, 0.0, 1e-6)
        )
    slopes = abs(here - below) * 1e6, abs(above - here) * 1e6
    return np.isfinite(slopes).all() and (
        abs(above + below - 2 * here) * 1e6 > 1e-3 * (1 + sum(slopes)) or max(slopes) > 1e5
    )


@pytest.mark.parametrize(
    "entry", [e for e in PRIMITIVES if e.vjp is not None and e.samples and e.name not in REGULAR], ids=lambda e: e.name
)
def test_a_kink_is_no_smooth_point(entry):
    rough = []
    for case in (c for c in DIFFERENTIABLE if c.entry is entry):
        for operands in points(case):
            node = case.call(*leaves(operands)).grad_fn
            claimed = entry.smooth is None or entry.smooth(*map(data, node.saved), **node.params)
            assert not (claimed and has_kink(case, operands)), operands
            rough.append(not claimed)
    assert any(rough) == (entry.smooth is not None)


# Partial derivatives that only balls provide take long, and have no kinks: `test_the_first_derivative` suffices.
NUMERIC = [c for c in ELEMENTWISE if c in DIFFERENTIABLE and all(isinstance(o, float) for o in c.operands)]


@pytest.mark.cases(4)
@at_each(c for c in NUMERIC if not c.entry.name.startswith("partial_of_"))
def test_the_gradient_is_the_slope_wherever_there_is_one(case):
    """Also at zeros, ties and integers, by each operand separately, because another may have a kink there."""
    for numbers in points(case):
        operands = leaves(numbers)
        value = total(case, operands)
        found, here = gradients(value, operands), data(value)
        for i, gradient in enumerate(found):
            with arrays.quiet():
                below, above = (
                    data(total(case, [n + h * (i == j) for j, n in enumerate(numbers)])) for h in (-1e-6, 1e-6)
                )
                before, behind = (here - below) * 1e6, (above - here) * 1e6
            size = 1 + max(abs(before), abs(behind))
            if size < 1e3 and abs(before - behind) < 1e-3 * size:
                np.testing.assert_allclose(gradient, (before + behind) / 2, rtol=1e-3, atol=1e-3, err_msg=str(numbers))


# --- dtypes, memory, shapes


@at_each(c for c in WITH_OPERANDS if isinstance(c.entry, Primitive) and c.entry.name not in REGULAR)
def test_truth_values_count_as_0_and_1(case):
    """Functions that move elements or return booleans keep booleans; all others return numbers."""
    truths = [np.arange(np.size(o)).reshape(np.shape(o)) % 2 == i % 2 for i, o in enumerate(case.operands)]
    with arrays.quiet():
        found, expected = data(case.call(*truths)), data(case.call(*(t.astype(float) for t in truths)))
    moves = case.entry.jet is jet_rules.linear and case.entry.name not in COUNTED
    assert found.dtype == (bool if moves else expected.dtype)
    # Elements put into a boolean array stay boolean.
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def seeded(case: Case, operands: Sequence[Tensor]) -> tuple[Any, list[Any]]:
    """The value and its gradients for fixed cotangents; None for an operand without influence."""
    value = case.call(*operands)
    if not operands or not value.requires_grad:
        return value, []
    return value, list(grad(value, operands, tensor(weights(value), dtype=value.dtype), allow_unused=True))


@pytest.mark.cases(4)
@at_each(c for c in WITH_OPERANDS if c.entry is not cast)
def test_single_precision_stays_single(case):
    with arrays.using_dtype("float32"):
        value, found = seeded(case, leaves(case.operands, "float32"))
    exact, wanted = seeded(case, leaves(case.operands))
    np.testing.assert_allclose(data(value), data(exact), rtol=2e-5, atol=1e-6)
    assert value.dtype == ("float32" if exact.dtype == "float64" else exact.dtype)
    for single, double in zip(found, wanted):
        assert (single is None) == (double is None)
        if single is not None:
            assert single.dtype == "float32"
            np.testing.assert_allclose(data(single), data(double), rtol=1e-4, atol=1e-5)


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def every_second(array: np.ndarray) -> np.ndarray:
    """The same numbers, not contiguous in memory."""
    spread = np.full(tuple(2 * s for s in array.shape), np.nan)
    view = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def reversed_in_memory(array: np.ndarray) -> np.ndarray:
    return np.flip(np.flip(array).copy())


@every_case
def test_the_layout_in_memory_does_not_matter(case):
    value, expected = seeded(case, leaves(case.operands))
    for layout in (read_only, every_second, np.asfortranarray, reversed_in_memory):
        laid_out = [Tensor(layout(o) if isinstance(o, np.ndarray) else o).requires_grad_() for o in case.operands]
        same, found = seeded(case, laid_out)
        np.testing.assert_allclose(data(same), data(value), rtol=1e-14, err_msg=layout.__name__)
        for g, e in zip(found, expected, strict=True):
            assert (g is None) == (e is None), layout.__name__
            if g is not None:
                np.testing.assert_allclose(data(g), data(e), rtol=1e-13, atol=1e-15, err_msg=layout.__name__)


@every_case
def test_operands_are_not_modified(case):
    operands = [Tensor(o).requires_grad_() for o in case.operands]
    before = [np.array(o) for o in case.operands]
    value = case.call(*operands)
    kept = data(value).copy()
    if operands and value.requires_grad:
        grad(value, operands, tensor(weights(value)), create_graph=True, allow_unused=True)
    for operand, numbers in zip(operands, before):
        np.testing.assert_array_equal(data(operand), numbers)
    np.testing.assert_array_equal(data(value), kept)


@at_each(c for c in ELEMENTWISE if c.operands)
def test_an_elementwise_function_of_nothing_is_nothing(case):
    numbers = all(isinstance(o, float) for o in case.operands)
    operands = leaves([np.zeros((0, *np.shape(o))) if numbers or np.shape(o) else o for o in case.operands])
    value, found = seeded(case, operands)
    assert value.size == 0
    for operand, g in zip(operands, found):
        assert g is None or g.shape == operand.shape


@at_each(c for c in ELEMENTWISE if c.operands)
def test_an_elementwise_function_of_a_stack_is_the_stack_of_its_values(case):
    value = data(case.call(*case.operands))
    stacked = case.call(*(np.full((2, 3, *(1,) * (value.ndim - np.ndim(o)), *np.shape(o)), o) for o in case.operands))
    np.testing.assert_allclose(data(stacked), np.full((2, 3, *value.shape), value), rtol=4e-15)


def test_the_names_that_differ_between_libraries_are_known_without_loading_them():
    found = {(dialect, e.name): e for e in table.foreign_entries() for dialect in e.dialects.split()}
    listed = (*table.LIBRARY_MEANINGS.items(), *table.TORCH_EXTENSIONS.items())
    assert found.keys() == {(dialect, name) for dialect, names in listed for name in names}
    assert all(table.find(name, dialect) is e for (dialect, name), e in found.items())


@several(
    "entry",
    [e for e in (*ENTRIES, *table.foreign_entries()) if e.samples and not any(p.variadic for p in e.parameters)],
    lambda e: e.name,
)
def test_arguments_can_be_given_by_their_names(entry):
    given = entry.samples[-1] if isinstance(entry.samples[-1], tuple) else entry.samples[-1:]
    placed = [*zip((p.name for p in entry.parameters), given)]
    named = {n: as_array(a) if is_float_data(a) and n != "tensors" else a for n, a in placed}
    np.testing.assert_array_equal(data(entry(**named)), data(entry(*given)))
