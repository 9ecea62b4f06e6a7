"""What mpmath and PyTorch compute for random programs of complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.fuzz.complex_programs import ANALYTIC, ComplexProgram, Library

DIGITS = 40


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def applied(*operands: Any) -> Any:
        if any(isinstance(operand, np.ndarray) for operand in operands):
            return np.frompyfunc(lambda *numbers: _bounded(function(*numbers)), len(operands), 1)(*operands)
        return _bounded(function(*operands))

    return applied


def _bounded(number: Any) -> Any:
    """Raises OverflowError for what floats, or functions of it, may have no range for."""
    if mpmath.isnan(number) or mpmath.fabs(number) > _LARGEST_WITHIN:
        raise OverflowError
    return number


_LARGEST_WITHIN = 1e100


def _det(a: Any) -> Any:
    return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]


def _inv(a: Any) -> Any:
    return np.array([[a[1, 1], -a[0, 1]], [-a[1, 0], a[0, 0]]], object) / _det(a)


def _transform(sign: int) -> Callable[[Any], Any]:
    """The Fourier transform of two elements, or its inverse."""
    scale = 1 if sign < 0 else 2
    return lambda v: np.array([(v[0] + v[1]) / scale, (v[0] - v[1]) / scale], object)


def _conj(a: Any) -> Any:
    return _elementwise(mpmath.conj)(a)


def _away_from(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Raises ValueError where a function has no derivative, or the sign of a zero decides its value."""
    points, is_on_cut = _BRANCH_POINTS.get(name, ()), _CUTS.get(name)

    def checked(z: Any, *others: Any) -> Any:
        if any(mpmath.fabs(z - point) < _NEAR for point in points):
            raise ValueError
        if is_on_cut is not None and isinstance(z, mpmath.mpc) and is_on_cut(z):
            raise ValueError
        return function(z, *others)

    return checked


def _on_negative_axis(z: Any) -> bool:
    return bool(z.imag == 0 and z.real < 0)


def _beyond_one(z: Any) -> bool:
    return bool(z.imag == 0 and abs(z.real) > 1)


def _beyond_i(z: Any) -> bool:
    return bool(z.real == 0 and abs(z.imag) > 1)


_NEAR = 1e-6
_BRANCH_POINTS = {
    "asin": (1, -1), "acos": (1, -1), "acosh": (1, -1), "atanh": (1, -1), "asinh": (1j, -1j), "atan": (1j, -1j), "log": (0,),
    "sqrt": (0,), "log10": (0,), "log2": (0,), "rsqrt": (0,), "log1p": (-1,), "power": (0,), "lambertw": (-mpmath.exp(-1),),
    "angle": (0,), "abs": (0,),
}  # fmt: skip
_CUTS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("log", "sqrt", "log10", "log2", "rsqrt", "power", "angle", "expi", "lgamma"), _on_negative_axis),
    "log1p": lambda z: bool(z.imag == 0 and z.real < -1),
    "lambertw": lambda z: bool(z.imag == 0 and z.real < -0.3),
    "acosh": lambda z: bool(z.imag == 0 and z.real < 1),
    **dict.fromkeys(("asin", "acos", "atanh"), _beyond_one),
    **dict.fromkeys(("asinh", "atan"), _beyond_i),
}
_EXACT = {
    name: getattr(mpmath, name)
    for name in "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh expm1 log10 gamma erf erfc erfi lambertw".split()  # noqa: SIM905
} | {
    "reciprocal": lambda z: 1 / z,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "square": lambda z: z * z,
    "log1p": lambda z: mpmath.log(1 + z),
    "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "exp2": lambda z: mpmath.exp(z * mpmath.log(2)),
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "lgamma": mpmath.loggamma,
    "digamma": mpmath.digamma,
    "j0": lambda z: mpmath.besselj(0, z),
    "j1": lambda z: mpmath.besselj(1, z),
    "i0": lambda z: mpmath.besseli(0, z),
    "expi": mpmath.ei,
    "real": mpmath.re,
    "imag": mpmath.im,
    "abs": mpmath.fabs,
    "angle": mpmath.arg,
    "square_modulus": lambda z: mpmath.re(z) ** 2 + mpmath.im(z) ** 2,
    "conj": mpmath.conj,
    "conj_method": mpmath.conj,
    "of_parts": mpmath.mpc,
    "of_angle": lambda r, phi: r * mpmath.expj(phi),
    "negative": lambda z: -z,
    "euler": lambda z: mpmath.exp(1j * z),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
}
_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "if_else": lambda a, b, then, otherwise: then if a > b else otherwise,
    "matmul": lambda a, b: a @ b,
    "einsum": lambda a, b: a @ b,
    "solve": lambda a, b: _inv(a) @ b,
    "inv": _inv,
    "det": _det,
    "trace": lambda a: a[0, 0] + a[1, 1],
    "sum": np.sum,
    "mean": lambda a: np.sum(a) / a.size,
    "prod": np.prod,
    "vdot": lambda a, b: _conj(a) @ b,
    "outer": np.outer,
    "transpose": np.transpose,
    "adjoint": lambda a: _conj(a).T,
    "element": lambda a: a[0],
    "last": lambda a: a[-1],
    "row": lambda a: a[1],
    "cumsum": np.cumsum,
    "fft": _transform(-1),
    "ifft": _transform(1),
    "frobenius": lambda a: mpmath.sqrt(np.sum(_elementwise(lambda z: mpmath.re(z) ** 2 + mpmath.im(z) ** 2)(a))),
}
EXACT = Library(
    {name: _elementwise(_away_from(name, f)) for name, f in _EXACT.items()} | _OF_ARRAYS,
    lambda value: mpmath.mpc(value) if isinstance(value, complex) else mpmath.mpf(value),
    lambda items: np.array(items, object),
)


def exact_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of mpmath."""
    convert = _elementwise(lambda v: mpmath.mpc(complex(v)) if np.iscomplexobj(v) else mpmath.mpf(float(v)))
    return {name: convert(value) for name, value in inputs.items()}


class Slopes(NamedTuple):
    """The derivatives of a value along the real and the imaginary axis of each element of an input; the second are 0
    where the input is real. They have the shape of the value, and behind it that of the input."""

    real: Any
    imaginary: Any

    @property
    def holomorphic(self) -> bool:
        """Whether the Cauchy-Riemann equations hold."""
        size = np.abs(self.real).max() + np.abs(self.imaginary).max()
        return bool(np.abs(1j * self.real - self.imaginary).max() <= 1e-12 * size + 1e-30)


class Reference(NamedTuple):
    """What mpmath has for a program: its value and slopes, and the relative error of the value in double precision."""

    value: Any
    slopes: Mapping[str, Slopes]
    rounding: float


def reference(program: ComplexProgram, inputs: Mapping[str, Any]) -> Reference | None:
    """None where the value or a slope does not exist, or is larger than is compared."""
    try:
        with mpmath.workdps(DIGITS):
            exact = exact_inputs(inputs)
            value = to_numpy(program.meaning(EXACT, exact))
            slopes = {name: _slopes(program, exact, name) for name in inputs}
        with mpmath.workprec(53):
            rounded = to_numpy(program.meaning(EXACT, exact_inputs(inputs)))
    except (ZeroDivisionError, ValueError, OverflowError, mpmath.libmp.NoConvergence):
        return None
    parts = [value, *(part for s in slopes.values() for part in s)]
    if not all(np.isfinite(part).all() and np.abs(part).max() < _LARGEST for part in parts):
        return None
    return Reference(value, slopes, float(np.abs(rounded - value).max() / (np.abs(value).max() or 1.0)))


_LARGEST = 1e12


def to_numpy(value: Any) -> Any:
    """A complex number or array of NumPy."""
    return np.asarray(value, object).astype(complex) if isinstance(value, np.ndarray) else np.complex128(complex(value))


def _slopes(program: ComplexProgram, exact: Mapping[str, Any], name: str) -> Slopes:
    found = [[], []]
    operand = exact[name]
    for place in np.ndindex(np.shape(operand)):
        for axis, parts in zip((1, 1j), found):
            if axis == 1j and not _is_complex(operand):
                continue
            parts.append(_along(program, exact, name, place, axis))
    shape = np.shape(found[0][0]) + np.shape(operand)
    real, imaginary = (np.stack(p, -1).reshape(shape) if p else np.zeros(shape, complex) for p in found)
    return Slopes(real, imaginary)


def _is_complex(operand: Any) -> bool:
    return isinstance(operand, np.ndarray | mpmath.mpc)


def _along(program: ComplexProgram, exact: Mapping[str, Any], name: str, place: tuple[int, ...], axis: complex) -> Any:
    """The derivative along an axis of one element, by central differences at three times as many digits."""
    with mpmath.workdps(3 * DIGITS):
        step = mpmath.mpf(10) ** (-DIGITS)
        above, below = (program.meaning(EXACT, moved(exact, name, place, s * axis * step)) for s in (1, -1))
        return to_numpy((above - below) / (2 * step))


def moved(exact: Mapping[str, Any], name: str, place: tuple[int, ...], by: Any) -> dict[str, Any]:
    """The inputs with one element of one of them moved."""
    operand = exact[name]
    if isinstance(operand, np.ndarray):
        operand = operand.copy()
        operand[place] += by
    else:
        operand = operand + by
    return {**exact, name: operand}


def second_derivative(program: ComplexProgram, inputs: Mapping[str, Any], names: tuple[str, str]) -> Any:
    """The mixed derivative along the real axes of two inputs that are numbers."""
    with mpmath.workdps(4 * DIGITS):
        exact, step = exact_inputs(inputs), mpmath.mpf(10) ** (-DIGITS)

        def at(i: int, j: int) -> Any:
            once = moved(exact, names[0], (), i * step)
            return program.meaning(EXACT, moved(once, names[1], (), j * step))

        return to_numpy((at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * step**2))


# --- PyTorch


@cache
def of_pytorch() -> Library:
    """PyTorch's functions, which lack SPECIAL of complex numbers."""
    import torch

    def number(value: complex) -> Any:
        return torch.tensor(value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64)

    def widened(function: Callable[..., Any]) -> Callable[..., Any]:
        """Of operands of one dtype, as linear algebra wants them."""

        def applied(*operands: Any) -> Any:
            dtype = torch.result_type(operands[0], operands[-1])
            return function(*(operand.to(dtype) for operand in operands))

        return applied

    functions: dict[str, Callable[..., Any]] = {
        name: getattr(torch, name) for name in ANALYTIC if hasattr(torch, name)
    } | {
        "real": lambda z: torch.real(z) if z.is_complex() else z,
        "imag": lambda z: torch.imag(z) if z.is_complex() else torch.zeros_like(z),
        "abs": torch.abs,
        "angle": torch.angle,
        "square_modulus": lambda z: torch.abs(z) ** 2,
        "conj": torch.conj,
        "conj_method": torch.conj,
        "of_parts": torch.complex,
        # Its own gradient of `torch.polar` is that of a positive modulus.
        "of_angle": lambda r, phi: r * torch.exp(1j * phi),
        "negative": torch.neg,
        "euler": lambda z: torch.exp(1j * z),
        "add": torch.add,
        "subtract": torch.subtract,
        "multiply": torch.multiply,
        "divide": torch.divide,
        "power": torch.pow,
        "if_else": lambda a, b, then, otherwise: torch.where(a > b, *widened(lambda *both: both)(then, otherwise)),
        "matmul": widened(torch.matmul),
        "einsum": widened(torch.matmul),
        "solve": widened(torch.linalg.solve),
        "inv": torch.linalg.inv,
        "det": torch.linalg.det,
        "trace": torch.trace,
        "sum": torch.sum,
        "mean": torch.mean,
        "prod": torch.prod,
        "vdot": widened(torch.vdot),
        "outer": torch.outer,
        "transpose": lambda a: a.mT,
        "adjoint": lambda a: a.mH,
        "element": lambda a: a[0],
        "last": lambda a: a[-1],
        "row": lambda a: a[1],
        "cumsum": lambda a: torch.cumsum(a, 0),
        "fft": torch.fft.fft,
        "ifft": torch.fft.ifft,
        "frobenius": torch.linalg.norm,
    }

    def vector(items: Any) -> Any:
        dtype = torch.complex128 if any(item.is_complex() for item in items) else torch.float64
        return torch.stack([item.to(dtype) for item in items])

    return Library(functions, number, vector)
