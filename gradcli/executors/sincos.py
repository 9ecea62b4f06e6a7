"""Sine and cosine as a pair of functions that LLVM compiles.

- x = k*pi/2 + r + t, with k an integer, |r| <= pi/4 and t the error of r, by fused multiplications with three parts of
  pi/2. x - k*P1 is exact: it is a multiple of the last place of P1 and below 1.
- sin(r + t) and cos(r + t) by the polynomials of fdlibm (k_sin.c and k_cos.c, Sun Microsystems 1993).
- The last two bits of k select which of them is the sine, and the signs.

The error is below 1 unit in the last place.
"""

from __future__ import annotations

from gradcli.executors.function_pairs import FunctionPair, PairCode
from gradcli.primitives.entries.elementwise import trigonometric

# Beyond this magnitude three parts of pi/2 do not suffice for the argument reduction.
LIMIT = 2.0**20
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_TWO_OVER_PI = 0.6366197723675814
# Adding it to a number below 2**51 leaves the nearest integer in the last bits of the mantissa.
ROUNDING = 1.5 * 2.0**52
_SINE = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COSINE = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


def _near(code: PairCode, x: str) -> tuple[str, str]:
    shifted = code.fma(x, code.literal(_TWO_OVER_PI), code.literal(ROUNDING))
    k = code.operation("fsub", shifted, code.literal(ROUNDING))
    r, t = _reduced(code, x, code.operation("fneg", k))
    sine, cosine = _sine(code, r, t), _cosine(code, r, t)
    bits = code.bits(shifted)
    odd = code.put(f"trunc {code.whole} {bits} to {code.truths}")
    next_bits = code.put(f"add {code.whole} {bits}, {code.integer(1)}")
    return (
        _signed(code, code.chosen(odd, cosine, sine), bits),
        _signed(code, code.chosen(odd, sine, cosine), next_bits),
    )


def _reduced(code: PairCode, x: str, minus_k: str) -> tuple[str, str]:
    """x - k*pi/2 as the sum of two numbers."""
    first, second, third = map(code.literal, _HALF_PI)
    high = code.fma(minus_k, first, x)
    product = code.operation("fmul", minus_k, second)
    r = code.operation("fadd", high, product)
    # The rounding errors of the product and the sum (Knuth's TwoSum).
    back = code.operation("fsub", r, high)
    lost_high = code.operation("fsub", high, code.operation("fsub", r, back))
    lost = code.operation("fadd", lost_high, code.operation("fsub", product, back))
    low = code.fma(minus_k, second, code.operation("fneg", product))
    return r, code.fma(minus_k, third, code.operation("fadd", lost, low))


def _sine(code: PairCode, r: str, t: str) -> str:
    z = code.operation("fmul", r, r)
    v = code.operation("fmul", z, r)
    series = code.horner(z, _SINE[1:])
    inner = code.operation("fsub", code.scaled(t, 0.5), code.operation("fmul", v, series))
    small = code.operation("fsub", code.fma(z, inner, code.operation("fneg", t)), code.scaled(v, _SINE[0]))
    return code.operation("fsub", r, small)


def _cosine(code: PairCode, r: str, t: str) -> str:
    z = code.operation("fmul", r, r)
    series = code.operation("fmul", code.operation("fmul", z, z), code.horner(z, _COSINE))
    half = code.scaled(z, 0.5)
    w = code.operation("fsub", code.literal(1.0), half)
    lost = code.operation("fsub", code.operation("fsub", code.literal(1.0), w), half)
    minus_r = code.operation("fneg", r)
    return code.operation("fadd", w, code.operation("fadd", lost, code.fma(minus_r, t, series)))


def _signed(code: PairCode, value: str, quadrant: str) -> str:
    """`value` with its sign changed in quadrants 2 and 3."""
    second = code.put(f"and {code.whole} {quadrant}, {code.integer(2)}")
    sign = code.put(f"shl {code.whole} {second}, {code.integer(62)}")
    return code.of_bits(code.put(f"xor {code.whole} {code.bits(value)}, {sign}"))


def _far(code: PairCode, x: str) -> tuple[str, str]:
    return code.called("sin", x), code.called("cos", x)


SINE_AND_COSINE = FunctionPair(
    "sincos", (trigonometric.sin, trigonometric.cos), limit=LIMIT, near=_near, far=_far, symbols=("sin", "cos")
)
