"""tanh and 1/cosh**2, its derivative, as a pair of functions that LLVM compiles.

Both are functions of e = exp(-2*|x|), as tanh(|x|) = (1 - e)/(1 + e) and 1/cosh(x)**2 = 4*e/(1 + e)**2:

- -2*|x| = k*log(2) + r + t, with k an integer, |r| <= log(2)/2 and t the error of r, by fused multiplications with two
  parts of log(2). The first difference is exact, as it is for sines.
- s = exp(r + t) - 1 by its Taylor polynomial, as the sum of two numbers, so that e = 2**k + 2**k*s, and e - 1 is
  accurate also where x is small.
- The quotients are corrected by their remainders.

The errors are below 1 unit in the last place.
"""

from __future__ import annotations

import math

from gradcli.executors.function_pairs import FunctionPair, PairCode
from gradcli.executors.sincos import ROUNDING
from gradcli.primitives.entries.elementwise import trigonometric

# Up to this magnitude neither result is subnormal.
LIMIT = 256.0
_LOG_2 = (0.6931471805599453, 2.3190468138462996e-17)
_ONE_OVER_LOG_2 = 1.4426950408889634
# The coefficients of exp(r) - 1 - r - r**2/2, divided by r**3; the first one left out would add 2**-58.
_EXPONENTIAL = [1.0 / math.factorial(n) for n in range(3, 14)]


def _near(code: PairCode, x: str) -> tuple[str, str]:
    one = code.literal(1.0)
    power, s, s_low = _exponential(code, code.scaled(code.intrinsic("fabs", x), -2.0))
    d, d_low, p, p_low = _one_plus(code, power, s, s_low)
    inverse = code.operation("fdiv", one, d)
    tanh = _quotient(code, p, p_low, d, d_low, inverse)
    u, lost = code.sum_and_error(one, s)
    u_low = code.operation("fadd", lost, s_low)
    square = code.operation("fmul", d, d)
    square_low = code.fma(d, d, code.operation("fneg", square))
    square_low = code.fma(code.operation("fadd", d, d), d_low, square_low)
    inverse_square = code.operation("fmul", inverse, inverse)
    found = _quotient(code, u, u_low, square, square_low, inverse_square)
    sech_square = code.operation("fmul", found, code.scaled(power, 4.0))
    return code.intrinsic("copysign", tanh, x), sech_square


def _exponential(code: PairCode, a: str) -> tuple[str, str, str]:
    """2**k and both parts of s, with exp(a) = 2**k*(1 + s)."""
    shifted = code.fma(a, code.literal(_ONE_OVER_LOG_2), code.literal(ROUNDING))
    minus_k = code.operation("fsub", code.literal(ROUNDING), shifted)
    first, second = map(code.literal, _LOG_2)
    high = code.fma(minus_k, first, a)
    r = code.fma(minus_k, second, high)
    t = code.fma(minus_k, second, code.operation("fsub", high, r))
    square = code.operation("fmul", r, r)
    # Two polynomials of r**2, whose chains of operations the processor interleaves.
    even, odd = (code.horner(square, _EXPONENTIAL[start::2]) for start in (0, 1))
    series = code.operation("fmul", code.operation("fmul", square, r), code.fma(r, odd, even))
    rest = code.operation("fadd", code.fma(square, code.literal(0.5), series), code.fma(t, r, t))
    s, s_low = code.sum_and_error(r, rest)
    # k is in the last bits of `shifted`, and moved to the exponent.
    exponent = code.put(f"shl {code.whole} {code.bits(shifted)}, {code.integer(52)}")
    power = code.of_bits(code.put(f"add {code.whole} {exponent}, {code.integer(1023 << 52)}"))
    return power, s, s_low


def _one_plus(code: PairCode, power: str, s: str, s_low: str) -> tuple[str, str, str, str]:
    """Both parts of 1 + e and of e - 1, for e = power*(1 + s)."""
    m, m_low = code.sum_and_error(code.literal(-1.0), power)
    p, p_low = code.sum_and_error(m, code.operation("fmul", power, s))
    p_low = code.operation("fadd", p_low, code.fma(power, s_low, m_low))
    d, d_low = code.sum_and_error(code.literal(2.0), p)
    return d, code.operation("fadd", d_low, p_low), p, p_low


def _quotient(code: PairCode, x: str, x_low: str, y: str, y_low: str, inverse: str) -> str:
    """(x + x_low)/(y + y_low), from an approximate 1/y."""
    q = code.operation("fmul", x, inverse)
    minus_q = code.operation("fneg", q)
    remainder = code.operation("fadd", code.fma(minus_q, y, x), code.fma(minus_q, y_low, x_low))
    return code.fma(remainder, inverse, q)


def _far(code: PairCode, x: str) -> tuple[str, str]:
    sech = code.operation("fdiv", code.literal(1.0), code.called("cosh", x))
    return code.called("tanh", x), code.operation("fmul", sech, sech)


TANH_AND_SECH_SQUARE = FunctionPair(
    "hyperbolic",
    (trigonometric.tanh, trigonometric.sech_square),
    limit=LIMIT,
    near=_near,
    far=_far,
    symbols=("tanh", "cosh"),
)
