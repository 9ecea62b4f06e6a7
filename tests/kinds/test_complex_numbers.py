"""Complex numbers, for every entry of the table that takes them: values, derivatives, and all kinds of operands."""

import cmath
import itertools
import math
from functools import partial

import mpmath
import numpy as np
import pytest

import gradcli
from gradcli import Tensor, compile, func, grad, tensor
from gradcli.autograd import gradcheck, gradgradcheck
from gradcli.errors import DifferentiationError, EvaluationError
from gradcli.kinds.jets import Jet
from tests.primitives.test_primitives import CASES, PRIMITIVES

# The elements of a sample are turned by this angle and moved off the real axis.
TURN, SHIFT = cmath.exp(0.3j), 0.05j
STEP = 1e-6


# Functions that take complex arguments, and real orders before them.
OF_REAL_ORDER = {"jv_of_number", "yv", "iv", "kv", "kve", "hyp0f1", "hyp1f1", "hyp2f1"}


def turned(operand):
    return np.asarray(operand) * TURN + SHIFT if np.ndim(operand) else complex(operand) * TURN + SHIFT


def of_complex_alone(case):
    """The case as a function of its complex operands, for functions of a real order too."""
    if case.entry.name == "hurwitz_zeta":
        # Of complex numbers it is Riemann's function.
        return case._replace(call=lambda z: case.call(z, 1.0), operands=case.operands[:1])
    if case.entry.name not in OF_REAL_ORDER:
        return case
    *orders, argument = case.operands
    return case._replace(call=lambda z: case.call(*orders, z), operands=(argument,))


CASES_OF_COMPLEX = [
    of_complex_alone(case)
    for case in CASES
    if case.operands
    and case.entry in PRIMITIVES
    and case.entry.numbers != "real"
    # A cast to a real dtype is an error.
    and case.entry.derivative != "none"
    and case.entry.name != "cast"
    # The phases of these are arbitrary; `test_complex_matrices` tests what does not depend on them.
    and case.entry.name not in ("eigenvectors", "left_vectors")
]
every_case = pytest.mark.parametrize("case", CASES_OF_COMPLEX, ids=lambda c: c.id)


def readout(value, seed=0):
    """A real number that depends on both parts of every element, with weights of their own."""
    value = value if isinstance(value, Tensor) else tensor(value)
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, (2, *value.shape))
    total = (gradcli.real(value) * drawn[0]).sum()
    return total + (gradcli.imag(value) * drawn[1]).sum() if value.is_complex() else total


def slopes(function, point):
    """dL/da + i*dL/db of a real function at a point, by central differences along both axes."""
    found = np.zeros(np.shape(point), complex)
    for place in np.ndindex(found.shape):
        for axis in (1.0, 1j):
            moved = np.zeros(found.shape, complex)
            moved[place] = axis * STEP
            above, below = (float(function(tensor(point + sign * moved))) for sign in (1, -1))
            found[place] += axis * (above - below) / (2 * STEP)
    return found


def close(found, expected, rtol=2e-7):
    expected = np.asarray(expected)
    size = np.abs(expected).max() if expected.size else 0.0
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=rtol * (1 + size))


@every_case
def test_the_gradient_is_the_slope_along_both_axes(case):
    points = [*map(turned, case.operands)]
    leaves = [tensor(p, requires_grad=True) for p in points]
    gradients = grad(readout(case.call(*leaves)), leaves)
    for i, gradient in enumerate(gradients):
        others = [*points]

        def of_one(z, i=i, others=others):
            return readout(case.call(*others[:i], z, *others[i + 1 :]))

        close(gradient, slopes(of_one, points[i]))


@every_case
def test_the_second_derivative_is_the_slope_of_the_first(case):
    points = [*map(turned, case.operands)]

    def slope(z):
        leaf = z if z.requires_grad else z.detach().requires_grad_()
        (gradient,) = grad(readout(case.call(leaf, *points[1:])), leaf, create_graph=True)
        return readout(gradient, 1)

    leaf = tensor(points[0], requires_grad=True)
    value = slope(leaf)
    (found,) = grad(value, leaf, allow_unused=True) if value.requires_grad else (None,)
    expected = slopes(slope, points[0])
    close(np.zeros(np.shape(points[0])) if found is None else found, expected, 1e-6)


@every_case
def test_real_operands_beside_complex_ones_have_real_gradients(case):
    if len(case.operands) < 2:
        return
    leaves = [tensor(case.operands[0], requires_grad=True), *map(turned, case.operands[1:])]
    (gradient,) = grad(readout(case.call(*leaves)), leaves[0])
    assert gradient.dtype == "float64"

    def of_real(x):
        return float(readout(case.call(x, *leaves[1:])))

    point = np.asarray(case.operands[0], float)
    for place in np.ndindex(point.shape):
        step = np.zeros(point.shape)
        step[place] = STEP
        close(np.asarray(gradient)[place], (of_real(point + step) - of_real(point - step)) / (2 * STEP))


@every_case
def test_series_and_batches_have_the_derivatives_of_the_graph(case):
    points = [tensor(turned(o)) for o in case.operands]
    along = [tensor(turned(np.ones(np.shape(o)) if np.ndim(o) else 1.0)) for o in case.operands]
    value, tangent = func.jvp(case.call, tuple(points), tuple(along))
    close(value, case.call(*points), 1e-14)
    ahead, behind = (case.call(*(p + sign * STEP * v for p, v in zip(points, along))) for sign in (1, -1))
    close(tangent, (np.asarray(ahead) - np.asarray(behind)) / (2 * STEP))
    rows = [np.stack([np.asarray(p), np.asarray(p) * 0.9]) for p in points]
    together = func.vmap(func.grad(lambda *z: readout(case.call(*z))))(*map(tensor, rows))
    for row in range(2):
        alone = func.grad(lambda *z: readout(case.call(*z)))(*(tensor(r[row]) for r in rows))
        close(np.asarray(together)[row], alone, 1e-12)


OF_MPMATH = {
    "exp": mpmath.exp, "log": mpmath.log, "sqrt": mpmath.sqrt, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
    "log1p": lambda z: mpmath.log(1 + z), "expm1": mpmath.expm1, "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": mpmath.log10, "exp2": lambda z: mpmath.power(2, z), "reciprocal": lambda z: 1 / z,
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)), "rsqrt": lambda z: 1 / mpmath.sqrt(z),
}  # fmt: skip
# Points inside, and close to the branch cuts of the functions above, on both sides of each.
POINTS = [
    complex(a, b) for a, b in itertools.product((-2.5, -0.6, 0.3, 1.7), (-1.8, -0.4, 1e-9, -1e-9, 0.7, 2.2))
]  # fmt: skip


@pytest.mark.parametrize("name", OF_MPMATH)
def test_values_and_derivatives_beside_branch_cuts(name):
    function, reference = getattr(gradcli, name), OF_MPMATH[name]
    with mpmath.workdps(40):
        for point in POINTS:
            expected = complex(reference(mpmath.mpc(point)))
            leaf = tensor(point, requires_grad=True)
            value = function(leaf)
            assert abs(value.item() - expected) <= 4e-15 * (abs(expected) + abs(point)), point
            # A holomorphic function has dL/da + i*dL/db = conj(f') for its real part L.
            (gradient,) = grad(gradcli.real(value), leaf)
            slope = complex(mpmath.diff(reference, mpmath.mpc(point), h=mpmath.mpf(10) ** -15))
            assert abs(gradient.item() - slope.conjugate()) <= 1e-8 * (1e-3 + abs(slope)), point


SPECIAL = {
    "gamma": mpmath.gamma, "lgamma": mpmath.loggamma, "digamma": mpmath.digamma, "erf": mpmath.erf, "erfc": mpmath.erfc,
    "expi": mpmath.ei, "exp1": mpmath.e1, "rgamma": mpmath.rgamma, "j0": lambda z: mpmath.besselj(0, z),
    "y1": lambda z: mpmath.bessely(1, z), "i1": lambda z: mpmath.besseli(1, z), "k0": lambda z: mpmath.besselk(0, z),
    "airyai": mpmath.airyai, "erfi": mpmath.erfi, "lambertw": mpmath.lambertw, "asec": mpmath.asec,
    "sinc": lambda z: mpmath.sincpi(z), "sinpi": mpmath.sinpi, "cospi": mpmath.cospi,
    "dawsn": lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
    "fresnels": mpmath.fresnels, "fresnelc": mpmath.fresnelc, "si": mpmath.si, "ci": mpmath.ci, "shi": mpmath.shi,
    "chi": mpmath.chi, "tanhshrink": lambda z: z - mpmath.tanh(z), "softplus": lambda z: mpmath.log(1 + mpmath.exp(z)),
    "logsigmoid": lambda z: -mpmath.log(1 + mpmath.exp(-z)), "zeta": mpmath.zeta,
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_values_and_slopes_of_special_functions(name):
    function, reference = gradcli.primitives.table.find(name), SPECIAL[name]
    with mpmath.workdps(30):
        for point in (0.7 + 0.4j, -1.3 + 2.1j, 3.2 - 1.7j, -4.6 - 0.3j):
            leaf = tensor(point, requires_grad=True)
            value = function(leaf)
            expected = complex(reference(mpmath.mpc(point)))
            assert abs(value.item() - expected) <= 1e-12 * abs(expected), point
            (gradient,) = grad(gradcli.real(value), leaf)
            slope = complex(mpmath.diff(reference, mpmath.mpc(point)))
            assert abs(gradient.item().conjugate() - slope) <= 1e-12 * (abs(slope) + abs(expected)), point


def test_the_scaled_bessel_function_and_its_slope():
    with mpmath.workdps(30):
        for order, point in ((0.0, 0.7 + 0.4j), (2.5, 3.2 - 1.7j), (1.0, 600 + 900j)):
            leaf = tensor(point, requires_grad=True)
            value = gradcli.kve(order, leaf)

            def scaled(z, order=order):
                return mpmath.exp(z) * mpmath.besselk(order, z)

            assert abs(value.item() - complex(scaled(mpmath.mpc(point)))) <= 1e-12 * abs(value.item())
            (gradient,) = grad(gradcli.real(value), leaf)
            slope = complex(mpmath.diff(scaled, mpmath.mpc(point)))
            assert abs(gradient.item().conjugate() - slope) <= 1e-12 * abs(value.item())


@pytest.mark.parametrize("point", [0.5 + 20j, 0.3 - 80j, -2 + 1e-9j, -40.3 + 25j, 70 + 3j, 1 + 1e-6j])
def test_derivatives_of_the_zeta_function(point):
    """Also beside a zero and the pole, and where the reflection formula overflows but for its cosine."""
    series = gradcli.zeta(Jet([point, 1.0], order=2)).coefficients
    with mpmath.workdps(60):
        for order in (0, 1, 2):
            expected = complex(mpmath.diff(mpmath.zeta, mpmath.mpc(point), order))
            found = series[order] * math.factorial(order)
            assert abs(found - expected) <= 2e-13 * abs(expected), order


def test_the_zeta_function_of_two_complex_numbers_is_refused(run):
    assert "'zeta' with q takes real numbers alone" in run("eval", "zeta(2+1j, 3)").err


@pytest.mark.parametrize("point", [9 + 0.2j, -8.5 + 0.7j, 3 - 9j, 0.1 + 8j, 30 + 1e-9j, -40.0 + 0j])
def test_derivatives_of_the_dawson_integral_far_from_0(point):
    """1 - 2*z*D(z) cancels there."""
    series = gradcli.dawsn(Jet([point, 1.0], order=3)).coefficients
    with mpmath.workdps(60):
        for order in (1, 2, 3):
            expected = complex(mpmath.diff(SPECIAL["dawsn"], mpmath.mpc(point), order))
            found = series[order] * math.factorial(order)
            assert abs(found - expected) <= 3e-13 * abs(expected), order


def test_logarithms_of_sums_are_principal_values_without_overflow():
    z, w = np.array([3 + 3j, -2 + 3j, 5 - 9j, 800 + 2j]), np.array([3.1 + 3j, -1 + 3.1j, 4 - 8.5j, 801 - 2j])
    shift = np.array([0, 0, 0, 800.0])
    expected = np.log(np.exp(z - shift) + np.exp(w - shift)) + shift
    np.testing.assert_allclose(gradcli.logaddexp(tensor(z), tensor(w)), expected, rtol=1e-14)
    np.testing.assert_allclose(gradcli.logsumexp(tensor([z, w]), 0), expected, rtol=1e-14)
    np.testing.assert_allclose(gradcli.logcumsumexp(tensor([z, w]))[1], expected, rtol=1e-14)
    np.testing.assert_allclose(gradcli.softmax(tensor([z, w]), 0)[0], np.exp(z - expected), rtol=1e-12)
    assert gradcli.softplus(tensor(1000 + 2j)).item() == 1000 + 2j
    assert gradcli.logsigmoid(tensor(-1000 + 2j)).item() == -1000 + 2j
    assert gradcli.sigmoid(tensor(-1000 + 2j)).item() == 0
    assert gradcli.logaddexp(tensor(complex(-math.inf, 0)), tensor(1 + 2j)).item() == 1 + 2j


def test_the_sign_of_a_complex_number_is_its_direction():
    """As torch.sgn has it, with its derivative."""
    z = tensor([3 - 4j, 0j, -2 + 0j], requires_grad=True)
    direction = gradcli.sgn(z)
    np.testing.assert_allclose(direction.detach(), [0.6 - 0.8j, 0, -1], rtol=1e-15)
    gradcli.real(direction).sum().backward()
    np.testing.assert_allclose(z.grad, [(1 - 0.6 * (0.6 - 0.8j)) / 5, 0, 0], rtol=1e-15)
    assert gradcli.sgn(tensor(-2.0)).item() == -1.0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_polygamma_functions_of_complex_numbers(n):
    with mpmath.workdps(30):
        for point in (0.7 + 0.4j, -1.3 + 2.1j, 30.2 - 1.7j, -44.6 - 0.3j, -100.4 + 2j, 0.3 + 25j):
            expected = complex(mpmath.polygamma(n, mpmath.mpc(point)))
            assert abs(gradcli.polygamma(n, tensor(point)).item() - expected) <= 1e-12 * abs(expected)


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("log", (complex(-2, 0.0), complex(-2, -0.0))),
        ("sqrt", (complex(-2, 0.0), complex(-2, -0.0))),
        ("asin", (complex(2, 0.0), complex(2, -0.0))),
        ("acos", (complex(2, 0.0), complex(2, -0.0))),
        ("atanh", (complex(2, 0.0), complex(2, -0.0))),
        ("acosh", (complex(-2, 0.0), complex(-2, -0.0))),
        ("asinh", (complex(0.0, 2), complex(-0.0, 2))),
        ("atan", (complex(0.0, 2), complex(-0.0, 2))),
    ],
)
def test_the_sign_of_zero_decides_the_side_of_a_branch_cut(name, sides):
    """As C99 and Python's cmath have it; the derivative is that of the same side."""
    function = getattr(gradcli, name)
    for point in sides:
        expected = getattr(cmath, name)(point)
        leaf = tensor(point, requires_grad=True)
        value = function(leaf)
        assert value.item() == pytest.approx(expected, rel=1e-15)
        inwards = 1e-6 * (1j * np.copysign(1, point.imag) if point.real else np.copysign(1, point.real))
        nearby = (getattr(cmath, name)(point + 2 * inwards) - getattr(cmath, name)(point + inwards)) / inwards
        (gradient,) = grad(gradcli.real(value), leaf)
        assert gradient.item() == pytest.approx(nearby.conjugate(), rel=1e-5)


class TestWhatUsersSee:
    def test_scalars_are_numbers_of_python(self):
        z = tensor(1 + 2j)
        assert z.dtype == "complex128"
        assert type(z.item()) is complex
        assert z.is_complex()
        assert not z.is_floating_point()
        assert (z * z).item() == -3 + 4j
        assert abs(z).dtype == "float64"

    def test_parts_and_adjoints_are_attributes(self):
        z = tensor([[1 + 2j, 3 - 1j], [0, 2j]], requires_grad=True)
        known = np.array([[1 + 2j, 3 - 1j], [0, 2j]])
        for name, expected in (
            ("real", known.real),
            ("imag", known.imag),
            ("H", known.conj().T),
            ("mH", known.conj().T),
        ):
            np.testing.assert_array_equal(getattr(z, name).detach(), expected)
        (z.real * z.imag).sum().backward()
        np.testing.assert_array_equal(z.grad, known.imag + 1j * known.real)
        x = tensor([1.0, 2.0])
        assert x.real is x
        np.testing.assert_array_equal(x.imag, [0, 0])
        np.testing.assert_array_equal(func.vmap(lambda row: row.imag)(z.detach()), known.imag)

    def test_gradients_follow_pytorch(self):
        # dL/da + i*dL/db of a**2 + b**2.
        z = tensor([1 + 2j, 3 - 1j], requires_grad=True)
        (abs(z) ** 2).sum().backward()
        np.testing.assert_allclose(z.grad, [2 + 4j, 6 - 2j])

    def test_a_hook_sees_the_gradient_that_users_know(self):
        z = tensor(1 + 2j, requires_grad=True)
        w = z * (2 + 1j)
        seen = []
        w.register_hook(seen.append)
        w.retain_grad()
        gradcli.imag(w).backward()
        assert seen[0].item() == w.grad.item() == 1j
        assert z.grad.item() == 1j * (2 - 1j)

    def test_a_function_of_ones_own_gets_and_gives_what_pytorch_does(self):
        class Square(gradcli.Function):
            @staticmethod
            def forward(ctx, z):
                ctx.save_for_backward(z)
                return z * z

            @staticmethod
            def backward(ctx, g):
                (z,) = ctx.saved_tensors
                return g * gradcli.conj(2 * z)

        z = tensor(1 + 2j, requires_grad=True)
        gradcli.real(Square.apply(z) * (1 - 1j)).backward()
        own = tensor(1 + 2j, requires_grad=True)
        gradcli.real(own * own * (1 - 1j)).backward()
        assert z.grad.item() == own.grad.item()

    def test_backward_needs_a_real_value(self):
        z = tensor(1 + 2j, requires_grad=True)
        with pytest.raises(DifferentiationError, match=r"only for real scalar outputs but got torch\.complex128"):
            (z * z).backward()
        (z * z).backward(tensor(1 + 0j))
        assert z.grad.item() == 2 - 4j

    @pytest.mark.parametrize("name", ["floor", "sign", "maximum", "less", "atan2", "max", "sort"])
    def test_what_has_no_complex_meaning_is_an_error(self, name):
        operands = (tensor([1 + 2j, 3j]), tensor([1.0, 2.0]))
        with pytest.raises(EvaluationError, match="takes real numbers, and not complex ones"):
            getattr(gradcli, name)(*operands[: 2 if name in ("maximum", "less", "atan2") else 1])

    def test_the_gradient_of_a_value_that_is_not_real_is_a_type_error(self):
        # As in HIPS autograd and JAX.
        with pytest.raises(TypeError, match="gives a complex one"):
            grad(lambda x: x * (1 + 0.2j))(1.0)
        with pytest.raises(TypeError, match="gives a truth value"):
            grad(lambda x: gradcli.allclose(x, x * 1.5))(1.0)
        assert gradcli.holomorphic_grad(lambda z: z * (1 + 0.2j))(1 + 0j) == 1 + 0.2j

    def test_nothing_becomes_complex_by_itself(self):
        assert np.isnan(gradcli.sqrt(tensor(-1.0)).item())
        with pytest.raises(EvaluationError, match="cannot make an array of real numbers from complex128 values"):
            tensor([1.0, 2j], dtype="float64")

    def test_single_precision(self):
        z = tensor([1 + 2j], dtype="complex64", requires_grad=True)
        value = abs(gradcli.exp(z) * 2.0).sum()
        value.backward()
        assert (z.dtype, value.dtype, z.grad.dtype) == ("complex64", "float32", "complex64")

    def test_a_compiled_program_takes_them(self):
        f = compile("abs(1/(1 + 1j*w*R*C))*scale")
        given = {"w": 100.0, "R": 1e3, "C": 1e-6, "scale": 2.0}
        value, gradients = f.value_and_grad(given)
        assert value == pytest.approx(2 / abs(1 + 0.1j), rel=1e-15)
        assert gradients["w"] == pytest.approx(-2 * 0.1**2 / 100 / (1 + 0.1**2) ** 1.5, rel=1e-13)
        several = f.compiled(("w", "R", "C", "scale"), wrt=("R",))
        assert several(100.0, 1e3, 1e-6, 2.0)[1][0] == pytest.approx(gradients["R"], rel=1e-14)

    def test_a_jacobian_by_complex_inputs_is_an_error_as_in_pytorch(self):
        z = tensor([1 + 2j])
        for operator in (func.jacrev, func.jacfwd, func.hessian):
            with pytest.raises(
                DifferentiationError, match="Expected all inputs to be real but received complex tensor"
            ):
                operator(lambda z: abs(z).sum())(z)


def test_many_steps_stay_exact():
    """The sum of the powers of a root of unity is 0, and so is its derivative by the scale at 1."""
    n = 1000
    root = cmath.exp(2j * cmath.pi / n)
    scale = tensor(1.0, requires_grad=True)
    total = sum(((scale * root) ** k for k in range(n)), tensor(0j))
    assert abs(total.item()) < 1e-10
    pulled = partial(grad, total, scale, retain_graph=True)
    slope = complex(pulled(tensor(1 + 0j))[0].item(), pulled(tensor(1j))[0].item())
    assert slope == pytest.approx(n / (root - 1) * 1.0, rel=1e-9)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_counts_both_parts(fast):
    z = tensor([1 + 2j, 0.3 - 1j], requires_grad=True)
    x = tensor([-1.5, 0.7], requires_grad=True)

    def wrong(x, z):
        class Product(gradcli.Function):
            @staticmethod
            def forward(ctx, x, z):
                ctx.save_for_backward(x, z)
                return x * z

            @staticmethod
            def backward(ctx, g):
                x, z = ctx.saved_tensors
                # The conjugate of z is missing.
                return gradcli.real(g * z), g * x

        return Product.apply(x, z)

    def right(x, z):
        return x * z, abs(z), x**z

    assert gradcheck(right, (x, z), check_forward_ad=True, fast_mode=fast)
    assert gradgradcheck(right, (x, z), fast_mode=fast)
    with pytest.raises(
        RuntimeError, match=r"While considering the \w+ part of complex outputs only, Jacobian mismatch"
    ):
        gradcheck(wrong, (x, z), fast_mode=fast)


@pytest.mark.parametrize(
    "call",
    [
        lambda z: gradcli.layer_norm(z, (2,)),
        lambda z: gradcli.cosine_similarity(z, z, 0),
        lambda z: gradcli.batch_norm(gradcli.reshape(z, (2, 1))),
        lambda z: gradcli.gaussian_nll_loss(z, z, 1.0),
    ],
)
def test_what_sums_plain_squares_takes_real_numbers(call):
    with pytest.raises(EvaluationError, match="takes real numbers, and not complex ones"):
        call(tensor([1 + 2j, 3j]))


def test_the_tangents_of_modulus_and_angle_at_0_are_0_as_in_pytorch():
    for function in (gradcli.abs, gradcli.angle):
        for zero in (0j, [0j, 1 + 2j]):
            point = tensor(zero)
            _, tangent = func.jvp(function, (point,), (gradcli.ones_like(point),))
            assert np.ravel(tangent)[0] == 0.0


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "sech", "csch", "coth"])
@pytest.mark.parametrize("point", [-1000 + 1j, 1000 - 1j, -400 + 0.3j])
def test_what_decays_does_not_overflow(name, point):
    reference = {"sigmoid": lambda z: 1 / (1 + mpmath.exp(-z))}.get(name) or getattr(mpmath, name)
    function = gradcli.primitives.table.find(name)
    with mpmath.workdps(30):
        expected, slope = complex(reference(mpmath.mpc(point))), complex(mpmath.diff(reference, mpmath.mpc(point)))
    leaf = tensor(point, requires_grad=True)
    value = function(leaf)
    assert abs(value.item() - expected) <= 1e-14 * abs(expected)
    (gradient,) = grad(gradcli.real(value), leaf)
    assert abs(gradient.item().conjugate() - slope) <= 1e-13 * abs(slope)


def test_a_compiled_program_may_have_a_constant_that_is_complex():
    program = compile("x = 2*x; (1 + 0.5j)**-2")
    assert program(x=1.0) == program(x=2.0) == pytest.approx((1 + 0.5j) ** -2)


class TestStableForms:
    """Those that hold for complex numbers, beside mpmath."""

    POINTS = (1e-12 + 1e-12j, -1e-9j, 1e-5 - 1e-5j, 0.3 + 0.2j, -0.4 - 0.2j, 3 - 2j, -20 + 1j)

    @pytest.mark.parametrize(
        "program",
        [
            "exp(z) - 1", "1 - exp(z)", "log(1 + z)", "log(1 - z)", "1 - cos(z)", "cos(z) - 1", "sqrt(1 + z) - 1",
            "(1 + z)**2 - 1", "1 - (1 + z)**1.5", "cosh(z) - 1", "1 - tanh(z)**2", "1 - sigmoid(z)", "3*exp(z) - 3",
            "1/(1 + exp(-z))", "(exp(z) - 1)/z", "sin(z)/z", "(1 - cos(z))/z**2", "log(1 + z)/z", "(z - sin(z))/z**3",
        ],
    )  # fmt: skip
    def test_they_keep_all_digits(self, program):
        names = {n: getattr(mpmath, n) for n in ("exp", "log", "cos", "sin", "sqrt", "cosh", "tanh")}
        names["sigmoid"] = lambda z: 1 / (1 + mpmath.exp(-z))
        compiled = compile(program)
        readout = compile(f"real({program})")
        together = compiled(z=np.array(self.POINTS))
        with mpmath.workdps(50):
            for i, point in enumerate(self.POINTS):
                exact = lambda z: eval(program, names | {"z": z})  # noqa: E731
                expected = complex(exact(mpmath.mpc(point)))
                slope = complex(mpmath.diff(exact, mpmath.mpc(point), h=mpmath.mpf(10) ** -18))
                assert abs(compiled(z=point) - expected) <= 2e-14 * abs(expected)
                assert abs(together[i] - expected) <= 2e-14 * abs(expected)
                gradient = readout.value_and_grad({"z": point})[1]["z"]
                assert abs(gradient.conjugate() - slope) <= 1e-12 * (abs(slope) + abs(expected))

    @pytest.mark.parametrize("program", ["1 - exp(z)", "cos(z) - 1", "1 - cosh(z)", "exp(z) - 1", "log(1 - z)"])
    def test_they_keep_the_sides_of_branch_cuts(self, program):
        names = {"exp": np.exp, "cos": np.cos, "cosh": np.cosh, "log": np.log}
        for point in (complex(x, side) for x in (0.3, -0.3, 1.2) for side in (0.0, -0.0)):
            expected = np.sqrt(eval(program, names | {"z": np.complex128(point)}))
            assert compile(f"sqrt({program})")(z=point) == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize(
        ("program", "value"), [("sqrt(z**4)/z**2", -1), ("sin(conj(z))/z", -1), ("abs(z)/z", -1j), ("sqrt(z**2)/z", 1)]
    )
    def test_what_is_not_analytic_has_no_series(self, program, value):
        assert compile(program)(z=1e-3j) == pytest.approx(value, abs=1e-5)
