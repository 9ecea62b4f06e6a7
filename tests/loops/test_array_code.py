"""Loops of arrays in machine code compute the same as the program of a round, run round by round."""

import math

import numpy as np
import pytest

import gradcli
from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.executors import llvm_ufuncs, stepwise
from gradcli.kinds.branch_points import watching
from gradcli.loops.array_code.array_loop_code import array_loop_code
from gradcli.loops.rolled_loop import Layout, RolledLoop
from gradcli.primitives.bind import constant
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.program.passes import optimise
from gradcli.program.record import record

if not llvm_ufuncs.is_available():
    pytest.skip("llvmlite is not installed", allow_module_level=True)

ROUNDS = 6


def heat(u, k):
    return [u + k * (gradcli.roll(u, 1, 0) - 2 * u + gradcli.roll(u, -1, 0))]


def heat_by_slices(u, k):
    return [gradcli.concat([u[:1], u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])]


def diffusion(u, k):
    inner = u[1:-1, 1:-1] + k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return [gradcli.pad(inner, 1)]


def laplace(u):
    return sum(gradcli.roll(u, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4 * u


def gray_scott(u, v, f):
    uvv = u * v * v
    return [u + 0.1 * laplace(u) - uvv + f * (1 - u), v + 0.05 * laplace(v) + uvv - (f + 0.06) * v]


def power_iteration(v, a):
    w = a @ v
    return [w / gradcli.linalg.norm(w)]


def bodies(x, v, m):
    d = x[:, None, :] - x[None, :, :]
    cubes = (gradcli.sum(d**2, -1) + 0.01) ** 1.5
    v = v + 0.1 * gradcli.sum(-d / cubes[..., None] * m[None, :, None], 1)
    return [x + 0.1 * v, v]


def long_short_term_memory(h, c, w, x):
    z = w @ gradcli.concat([h, x])
    n = len(h.shape) and h.shape[0]
    i, f, o = (gradcli.sigmoid(z[k * n : (k + 1) * n]) for k in range(3))
    c = f * c + i * gradcli.tanh(z[3 * n :])
    return [o * gradcli.tanh(c), c]


def adam(w, m, v):
    g = 2 * w
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return [w - 0.01 * m / (gradcli.sqrt(v) + 1e-3), m, v]


def attention(x, q, k, v):
    return [gradcli.softmax((x @ q) @ (x @ k).T / 2.0, -1) @ (x @ v)]


def conjugate_gradients(r, p, a):
    step = (r @ r) / (p @ (a @ p) + 1.0)
    return [r - step * (a @ p), r + 0.5 * p]


# Rounds by name: a function of the carries and reads, the shapes of the carries and those of the reads.
PROGRAMS = {
    "heat": (heat, [(21,)], [()]),
    "heat by slices": (heat_by_slices, [(21,)], [()]),
    "diffusion": (diffusion, [(6, 11)], [()]),
    "gray-scott": (gray_scott, [(6, 5), (6, 5)], [()]),
    "gradient descent": (lambda w, x, y: [w - 0.1 * x.T @ (x @ w - y) / 9], [(5,)], [(9, 5), (9,)]),
    "power iteration": (power_iteration, [(7,)], [(7, 7)]),
    "recurrent network": (lambda h, u, b: [gradcli.tanh(u @ h + b)], [(19,)], [(19, 19), (19,)]),
    "long short-term memory": (long_short_term_memory, [(5,), (5,)], [(20, 8), (3,)]),
    "ising": (lambda m, j, b: [gradcli.tanh(b * (j @ m))], [(9,)], [(9, 9), ()]),
    "n bodies": (bodies, [(4, 3), (4, 3)], [(4,)]),
    "squaring": (lambda a: [a @ a / 8], [(6, 6)], []),
    "normalisation": (lambda x: [(x - gradcli.mean(x, 0)) / gradcli.sqrt(gradcli.var(x, 0) + 0.1)], [(9, 5)], []),
    "relu": (lambda x, w: [gradcli.relu(x @ w)], [(6, 5)], [(5, 5)]),
    "extremes": (lambda x: [gradcli.where(x > 0.5, x * x, gradcli.maximum(x, 0.1)) - gradcli.max(x)], [(11,)], []),
    "least of rows": (lambda x: [gradcli.amin(x, 1, keepdims=True) * x], [(3, 9)], []),
    "cumulative sum": (lambda x: [gradcli.cumsum(0.3 * x, 0)], [(5, 4)], []),
    "cumulative product": (lambda x: [gradcli.cumprod(x, 1)], [(3, 7)], []),
    "triangles": (lambda x: [gradcli.tril(x, 1) + 0.5 * gradcli.triu(x)], [(2, 5, 4)], []),
    "outer product": (lambda a, v: [a + 0.1 * gradcli.outer(v, v)], [(9, 9)], [(9,)]),
    "exchange": (lambda a, b: [b, 0.9 * a], [(5,), (5,)], []),
    "stack": (lambda s: [gradcli.stack([s[1], -s[0]])], [(2,)], []),
    "reversed": (lambda s: [gradcli.flip(s, 0) + s[::2][0] + 0.5 * s[::-1]], [(9,)], []),
    "attention": (attention, [(5, 4)], [(4, 4), (4, 4), (4, 4)]),
    "row times matrix": (lambda v, a: [v @ a / 3], [(11,)], [(11, 11)]),
    "batches of matrices": (lambda x, a: [a @ x / 3], [(3, 5, 6)], [(3, 5, 5)]),
    "einsum": (lambda x, a: [gradcli.einsum("ij,bj->bi", a, x) / 2], [(6, 5)], [(5, 5)]),
    "trace": (lambda a: [a / (gradcli.trace(a) + 9)], [(5, 5)], []),
    "clipped": (lambda x: [gradcli.clip(1.2 * x, -0.5, 0.5)], [(3, 4)], []),
    "permuted": (lambda x: [0.9 * x[gradcli.tensor([2, 0, 1])]], [(3, 4)], []),
    "powers": (lambda x: [0.1 * (abs(x) ** 3 + (x * x + 1) ** 0.5 + x**2)], [(9,)], []),
    "adam": (adam, [(9,), (9,), (9,)], []),
    "conjugate gradients": (conjugate_gradients, [(7,), (7,)], [(7, 7)]),
    "flattened": (lambda x: [gradcli.reshape(0.5 * x.T, (3, 4)) + gradcli.prod(x[0])], [(3, 4)], []),
}


def recorded(function, shapes):
    """The program of a function of arrays of these shapes."""
    examples = {f"{i}": np.full(shape, math.nan) if shape else math.nan for i, shape in enumerate(shapes)}
    with arrays.using_namespace(None):
        program = record(lambda **given: function(*given.values()), examples).program
    return optimise(program._replace(guards=()))


def described(program, carries, reads, rows=(), *, offsets=None, **fields):
    """A loop whose round is a program."""
    shapes = iter([v.shape for v in program.inputs[1:]])
    layout = Layout(
        [next(shapes) for _ in range(carries)],
        [next(shapes) for _ in range(reads)],
        [[next(shapes) for _ in range(count)] for count in rows],
    )
    return RolledLoop(
        paths=[], program=program, layout=layout, offsets=offsets or [0] * len(layout.rows), rounds=0, first=0.5, step=2.0,
        **fields,
    )  # fmt: skip


def forward_loop(name):
    function, carries, reads = PROGRAMS[name]
    program = recorded(lambda _counter, *given: function(*given), [(), *carries, *reads])
    return described(program, len(carries), len(reads))


def backward_loop(name):
    """The loop of the cotangents of the carries and, as sums, of the reads, which reads the carries of each round."""
    function, carries, reads = PROGRAMS[name]
    program = recorded(function, [*carries, *reads])
    count = len(carries)

    def run(_counter, *given):
        after, total, read, before = (
            given[:count], given[count : count + len(reads)], given[count + len(reads) : count + 2 * len(reads)],
            given[count + 2 * len(reads) :],
        )  # fmt: skip
        leaves = [Tensor(x).requires_grad_() for x in (*before, *read)]
        with enable_grad(), watching(None):
            results = stepwise.outputs(program, leaves)
            pairs = [*zip(leaves[count:], total), *zip(results, after)]
            roots, weights = zip(*((r, w) for r, w in pairs if isinstance(r, Tensor) and r.requires_grad))
            found = grad([*roots], leaves, [*weights], allow_unused=True)
        return [0.0 if f is None else constant(f) for f in found]

    shapes = [(), *carries, *reads, *reads, *carries]
    program = recorded(run, shapes)
    return described(program, count + len(reads), len(reads), [count], reverse=True)


def history(loop, given, sequences, rounds, *, last=False, begin=0):
    """The carries of all rounds, by machine code."""
    written = array_loop_code(loop, "single")
    assert written is not None
    text = "\n".join([*sorted(written.declared), written.text])
    code = llvm_ufuncs.compile_loop("single", text, sorted(written.called))
    assert code is not None
    places, dtypes = range(len(loop.widths)), ["float64"] * (2 + len(loop.widths))
    signature = "(b),(g)" + "".join(f",(r{j},w{j})" for j in places) + "->(r,c)"
    # The machine code lives as long as this object.
    made = llvm_ufuncs.as_ufunc(code, dtypes, ["float64"], signature)
    bounds = np.array([begin, begin + rounds, 0 if last else 1, begin, *[begin] * len(places)], float)
    found = np.full((1 if last else rounds + 1, loop.carries), math.nan)
    with np.errstate(all="ignore"):
        made.ufunc(bounds, given, *sequences, found)
    return found


def expected_history(loop, given, sequences, rounds, *, begin=0):
    """The same, by running the program of the round."""
    rows, reads = [given[: loop.carries]], _parts(given[loop.carries :], loop.layout.reads)
    ended = False
    for i in range(rounds)[:: -1 if loop.reverse else 1]:
        own = [s[i + offset] for s, offset in zip(sequences, loop.offsets)]
        parts = [p for row, shapes in zip(own, loop.layout.rows) for p in _parts(row, shapes)]
        if not ended and not (loop.idle is not None and parts[loop.idle] == 0):
            counter = loop.first + loop.step * (begin + i)
            inputs = [counter, *_parts(rows[-1], loop.layout.carries), *reads, *parts]
            outputs = stepwise.outputs(loop.program, inputs)
            rows.append(np.concatenate([np.broadcast_to(o, s).ravel() for o, s in zip(outputs, loop.layout.carries)]))
        else:
            rows.append(rows[-1])
        ended = ended or (loop.active is not None and rows[-1][loop.carry_starts[loop.active]] == 0)
    return np.array(rows[::-1] if loop.reverse else rows, float)


def _parts(numbers, shapes):
    found, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        found.append(numbers[begin:end].reshape(shape) if shape else float(numbers[begin]))
        begin = end
    return found


def check(loop, seed=0, rounds=ROUNDS, extra=0, sequences=None, begin=0):
    """Compare all rows, and those of a loop that keeps the last carries alone."""
    rng = np.random.default_rng(seed)
    given = rng.uniform(-1, 1, loop.carries + loop.reads)
    if sequences is None:
        sequences = [rng.uniform(-1, 1, (rounds + extra, width)) for width in loop.widths]
    with np.errstate(all="ignore"):
        expected = expected_history(loop, given, sequences, rounds, begin=begin)
    found = history(loop, given, sequences, rounds, begin=begin)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    final = history(loop, given, sequences, rounds, last=True, begin=begin)
    np.testing.assert_allclose(final[0], expected[0 if loop.reverse else -1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_rounds(name):
    check(forward_loop(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_of_cotangents(name):
    check(backward_loop(name))


def test_elementwise_operations_round_as_those_of_python():
    loop = forward_loop("heat")
    given = np.random.default_rng(1).uniform(-1, 1, loop.carries + loop.reads)
    assert (history(loop, given, [], ROUNDS) == expected_history(loop, given, [], ROUNDS)).all()


FUNCTIONS = (
    "abs", "sign", "floor", "ceil", "trunc", "round", "sqrt", "rsqrt", "exp", "expm1", "exp2", "log", "log1p", "log2",
    "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
    "sigmoid", "softplus", "log_sigmoid", "relu", "leaky_relu", "elu", "softsign", "isnan", "isinf", "isfinite",
    "reciprocal", "square", "logical_not",
)  # fmt: skip
ELEMENTWISE = {name: getattr(gradcli, name) for name in FUNCTIONS} | {
    "clip": lambda x: gradcli.clip(x, -0.5, 1.0),
    "maximum": lambda x: gradcli.maximum(x, gradcli.flip(x, 0)),
    "minimum": lambda x: gradcli.minimum(x, gradcli.flip(x, 0)),
    "derivative of the arc tangent": trigonometric.over_one_plus_square,
    "1 - x**2": trigonometric.one_minus_square,
    "x**3": lambda x: x**3,
    "x**0.3": lambda x: x**0.3,
}
NUMBERS = [
    0.0, -0.0, 0.3, -0.3, 0.5, 1.5, -2.5, 1.0, -1.0, 30.0, -30.0, 800.0, -800.0, 1e-300, 1e300, math.inf, -math.inf, math.nan,
]  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name):
    shape = (len(NUMBERS),)
    program = recorded(lambda _i, x: [ELEMENTWISE[name](x)], [(), shape])
    loop, given = described(program, 1, 0), np.array(NUMBERS)
    with np.errstate(all="ignore"):
        expected = expected_history(loop, given, [], 1)
    found = history(loop, given, [], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    signed = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[signed].all()


def test_rows_counters_and_offsets():
    program = recorded(lambda i, u, x, y: [0.5 * u + i * x[0] + y], [(), (3,), (2,), (3,)])
    check(described(program, 1, 0, [1, 1], offsets=(1, 0)), extra=1)
    check(described(program, 1, 0, [1, 1], offsets=(0, 1), reverse=True), extra=1)


def test_parts_of_the_rounds():
    program = recorded(lambda i, u, x: [0.5 * u + i * x], [(), (3,), (3,)])
    check(described(program, 1, 0, [1]), begin=4)
    check(described(program, 1, 0, [1], reverse=True), begin=4)


def test_a_loop_that_ends_before_its_last_round():
    program = recorded(lambda _i, u, _on: [u * 2, gradcli.where(gradcli.sum(u) < 50, 1.0, 0.0)], [(), (3,), ()])
    loop = described(program, 2, 0, active=1)
    given = np.array([1.0, 2, 3, 1])
    expected = expected_history(loop, given, [], 9)
    np.testing.assert_array_equal(history(loop, given, [], 9), expected)
    np.testing.assert_array_equal(history(loop, given, [], 9, last=True)[0], expected[-1])
    assert expected[-1][0] == 32


@pytest.mark.parametrize("reverse", [False, True])
def test_idle_rounds(reverse):
    program = recorded(lambda _i, u, x, _works: [u * 2 + x], [(), (3,), (3,), ()])
    loop = described(program, 1, 0, [2], idle=1, reverse=reverse)
    row = np.random.default_rng(0).uniform(-1, 1, (ROUNDS, 4))
    row[:, 3] = np.arange(ROUNDS) < 4
    check(loop, sequences=[row])


@pytest.mark.parametrize("rounds", [1, 15, 16, 17, 40])
def test_products_that_are_added_together(rounds):
    def run(_i, total, x, y, row, works):
        products = gradcli.reshape(x, (17, 1)) @ gradcli.reshape(y, (1, 19)) + gradcli.outer(y[:17], row)
        return [total + products, 0.9 * x + row[:17], gradcli.sin(y)]

    program = recorded(run, [(), (17, 19), (17,), (19,), (19,), ()])
    row = np.random.default_rng(0).uniform(-1, 1, (rounds, 20))
    row[:, 19] = np.arange(rounds) % 5 != 3
    check(described(program, 3, 0, [2], idle=1), rounds=rounds, sequences=[row])
    check(described(program, 3, 0, [2], reverse=True), rounds=rounds, sequences=[row])


def test_products_that_are_added_until_a_loop_ends():
    def run(_i, total, x, _on):
        return [total + gradcli.outer(x, x), 1.1 * x, gradcli.where(gradcli.max(x) < 2, 1.0, 0.0)]

    loop = described(recorded(run, [(), (16, 16), (16,), ()]), 3, 0, active=2)
    given = np.ones(loop.carries)
    expected = expected_history(loop, given, [], 30)
    np.testing.assert_allclose(history(loop, given, [], 30), expected, rtol=1e-12)
    np.testing.assert_allclose(history(loop, given, [], 30, last=True)[0], expected[-1], rtol=1e-12)
    assert expected[-1][272] == 0


def test_factors_that_do_not_fit_are_not_kept():
    def run(_i, a, b, x):
        return [a + gradcli.outer(x, x), b + gradcli.outer(x, 2 * x), 0.9 * x]

    check(described(recorded(run, [(), (600, 600), (600, 600), (600,)]), 3, 0), rounds=3)


def test_what_is_not_written():
    program = recorded(lambda _i, a: [gradcli.linalg.inv(a)], [(), (3, 3)])
    assert array_loop_code(described(program, 1, 0), "single") is None
    program = recorded(lambda _i, a, b: [a @ b @ b @ b, b], [(), (300, 300), (300, 300)])
    assert array_loop_code(described(program, 2, 0), "single") is None


class _RandomRound:
    """A random program of a few supported operations, as a function of the carries and reads."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.sizes = [int(s) for s in self.rng.choice([1, 2, 3, 4, 5, 8, 9, 17, 20], 3)]
        self.carries = [self.shape() for _ in range(self.rng.integers(1, 4))]
        self.reads = [self.shape() for _ in range(self.rng.integers(0, 3))]
        self.operations = int(self.rng.integers(1, 14))
        self.choices = self.rng.integers(0, 2**31, 4000).tolist()

    def shape(self):
        return tuple(int(s) for s in self.rng.choice(self.sizes, self.rng.integers(0, 4)))

    def __call__(self, *given):
        self.number = 0
        pool = [*given]
        for _ in range(self.operations):
            pool.append(self.bounded(self.made(pool)))
        return [self.fitted(self.chosen(pool[-4:]), shape) for shape in self.carries]

    def chosen(self, options):
        self.number += 1
        return options[self.choices[self.number] % len(options)]

    def below(self, bound):
        return self.chosen(range(bound))

    def bounded(self, x):
        return gradcli.where(abs(x) < 3, x, 0.5) if self.below(4) else 0.5 * x

    def made(self, pool):
        x = self.chosen(pool)
        if self.below(3) == 0:
            return self.of_two(x, self.chosen(pool))
        if not arrays.shape(x):
            return self.chosen([gradcli.sin, gradcli.exp, lambda x: x * x, gradcli.sigmoid])(x)
        return self.of_axis(x, arrays.shape(x), self.below(len(arrays.shape(x))))

    def of_two(self, x, y):
        try:
            return self.chosen([lambda: x * y - 0.5, lambda: x + y, lambda: gradcli.maximum(x, y), lambda: x @ y])()
        except gradcli.errors.GradcliError:
            return gradcli.outer(x, y) if len(arrays.shape(x)) == len(arrays.shape(y)) == 1 else x - 0.3

    def of_axis(self, x, shape, axis):
        size, key = shape[axis], (slice(None),) * axis
        begin, step = self.below(size), self.chosen([1, 1, 2, -1])
        moved = (*range(axis, len(shape)), *range(axis))
        return self.chosen(
            [
                lambda: gradcli.roll(x, self.below(5) - 2, axis),
                lambda: gradcli.flip(x, axis),
                lambda: x[(*key, slice(None, None, step))],
                lambda: x[(*key, slice(begin, None))],
                lambda: x[(*key, begin)],
                lambda: gradcli.concat([x[(*key, slice(begin, None))], 2 * x], axis),
                lambda: gradcli.stack([x, 0.5 * x], axis),
                lambda: gradcli.sum(x, axis, keepdims=bool(self.below(2))),
                lambda: gradcli.max(x, axis),
                lambda: gradcli.mean(x),
                lambda: gradcli.softmax(x, axis),
                lambda: gradcli.cumsum(0.3 * x, axis),
                lambda: gradcli.transpose(x),
                lambda: gradcli.permute(x, moved),
                lambda: gradcli.reshape(x, (-1,)),
                lambda: gradcli.reshape(gradcli.transpose(x), (-1, size)),
                lambda: x[None] * 0.5,
                lambda: gradcli.where(x > 0, x, gradcli.exp(x)),
                lambda: x - gradcli.tanh(x) / 2,
                lambda: gradcli.pad(x, 1),
            ]
        )()

    def fitted(self, x, shape):
        """Some elements of `x` in another shape."""
        if arrays.shape(x) == shape:
            return x
        flat, count = gradcli.reshape(x, (-1,)), math.prod(shape)
        if arrays.shape(flat)[0] < count:
            return gradcli.reshape(flat[:1], ()) * np.linspace(-1, 1, count).reshape(shape)
        return gradcli.reshape(flat[:count], shape)


@pytest.mark.cases(60)
@pytest.mark.parametrize("seed", range(60))
def test_random_rounds(seed):
    function = _RandomRound(seed)
    shapes = [(), *function.carries, *function.reads]
    program = recorded(lambda _counter, *given: function(*given), shapes)
    loop = described(program, len(function.carries), len(function.reads), reverse=seed % 2 == 1)
    check(loop, seed, rounds=3)
