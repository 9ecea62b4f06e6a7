"""Complex numbers from their parts, and their parts. A real number is a complex one on the real axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays import mathematical_constants
from gradcli.errors import CallError, ShapeError
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import absolute, divide, identity, multiply, sign, zeros_like
from gradcli.primitives.entries.comparisons import equal, isnan, less, not_equal, where
from gradcli.primitives.entries.complex_parts import conjugate, from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.trigonometric import cos, sin
from gradcli.primitives.entries.exponential import log
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import stack
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import jet_through_definition
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive

SUBJECT = "complex numbers"

_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_POINTS = (0.7 + 0.4j, [-1.0 + 0.3j, 2.0 - 1.5j])


def _phase_rule(g: Any, _y: Any, z: Any) -> Any:
    origin = equal(z, 0)
    return where(origin, 0.0, divide(multiply(g, -1j), where(origin, 1.0, z)))


def _phase_of_series(z: Any) -> Any:
    origin = equal(z, 0)
    return where(origin, 0.0, imag(log(where(origin, 1.0, z))))


phase: Primitive = elementwise(
    "phase", "z", "the angle of a complex number, between -pi and pi",
    internal="angle", numbers="complex",
    forward=lambda xp, z: xp.angle(z),
    vjp=(_phase_rule,),
    jet=jet_through_definition(_phase_of_series),
    derivative="i*g*z/abs(z)**2",
    node_name="AngleBackward0",
    samples=_POINTS,
)  # fmt: skip


def _unary(of_complex: Callable[[Any], Any], of_real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that is `of_complex` for complex operands, and `of_real` for real ones."""
    return lambda x: of_complex(x) if arrays.is_complex(x) else of_real(x)


conj: Composite = Composite(
    "conj", "x", "the complex conjugate; x itself where it is real", _unary(conjugate, identity),
    derivative="conj(g)",
    aliases=("conjugate", "conj_physical"),
    samples=((_MATRIX,), 0.7),
)  # fmt: skip
real: Composite = Composite(
    "real", "x", "the real part; x itself where it is real", _unary(real_part, identity),
    derivative="g",
    aliases=("re",),
    samples=((_MATRIX,), 0.7),
)  # fmt: skip
imag: Composite = Composite(
    "imag", "x", "the imaginary part; 0 where x is real", _unary(imaginary_part, zeros_like),
    derivative="i*g",
    aliases=("im",),
    samples=_POINTS,
    example="'imag(z)' z=1+2j",
)  # fmt: skip
angle = Composite(
    "angle", "x", "the angle of a number in the complex plane, between -pi and pi; of a negative one it is pi",
    _unary(phase, lambda x: where(isnan(x), x, where(less(x, 0), mathematical_constants.pi(), zeros_like(x)))),
    derivative="i*g*x/abs(x)**2, 0 where x is real",
    edges=("at 0 it is 0, with derivative 0",),
    domain="smooth where x != 0, and not from one side of the negative real axis to the other",
    aliases=("arg", "phase"),
    samples=((_MATRIX,), -0.7),
)  # fmt: skip


def _direction(z: Any) -> Any:
    origin = equal(z, 0)
    return where(origin, 0.0, divide(z, absolute(where(origin, 1.0, z))))


sgn = Composite(
    "sgn", "x", "x/abs(x), 0 at 0: of a real x its sign", _unary(_direction, sign),
    derivative="0 where x is real, else the part of g across x, over abs(x)",
    edges=("sgn(0) = 0, with derivative 0",),
    domain="smooth where x != 0",
    samples=((_MATRIX,), -0.7),
)  # fmt: skip
isreal = Composite(
    "isreal", "x", "whether the imaginary part is 0", lambda x: equal(imag(x), 0.0),
    derivative="none",
    samples=((_MATRIX,), 0.7),
)  # fmt: skip
iscomplex = Composite(
    "iscomplex", "x", "whether the imaginary part is not 0", lambda x: not_equal(imag(x), 0.0),
    derivative="none",
    samples=((_MATRIX,), 0.7),
)  # fmt: skip
is_complex = Composite(
    "is_complex", "x", "whether the dtype is complex", lambda x: equal(float(arrays.is_complex(x)), 1.0),
    derivative="none",
    aliases=("iscomplexobj",),
    example="'is_complex(2j)'",
)  # fmt: skip
polar = Composite(
    "polar", "abs, angle", "the complex number of a modulus and an angle in radians",
    lambda abs, angle: from_parts(multiply(abs, cos(angle)), multiply(abs, sin(angle))),
    derivative="real(g*exp(-i*angle)), abs*imag(g*exp(-i*angle))",
    samples=((0.7, 1.3), ([1.0, 2.0], [0.5, 0.25])),
)  # fmt: skip


def _as_real(x: Any) -> Any:
    if not arrays.is_complex(x):
        raise CallError("view_as_real is only supported for complex tensors")
    return stack([bind(real_part, (x,), {}), bind(imaginary_part, (x,), {})], -1)


def _as_complex(x: Any) -> Any:
    sizes: Sequence[int] = arrays.shape(x)
    if not sizes or sizes[-1] != 2:
        raise ShapeError("Tensor must have a last dimension of size 2", hint="the real and the imaginary part")
    return from_parts(index(x, (Ellipsis, 0)), index(x, (Ellipsis, 1)))


view_as_real = Composite(
    "view_as_real", "x", "the real and imaginary parts along a new last axis of size 2", _as_real,
    derivative="complex(g[..., 0], g[..., 1])",
    samples=_POINTS,
    example="'sum(view_as_real(z))' z=1+2j",
)  # fmt: skip
view_as_complex = Composite(
    "view_as_complex", "x", "the complex numbers whose parts are along the last axis, of size 2", _as_complex,
    derivative="view_as_real(g)",
    samples=(([[1.0, 2.0], [0.5, -3.0]],),),
)  # fmt: skip
