"""The conjugate and the parts of complex numbers, which derivative rules need, and numbers of parts.

`elementwise.complex_numbers` has what users call. Derivative rules follow the convention of cotangents inside a pass,
dL/da - i*dL/db for z = a + i*b (see `gradcli.primitives.primitive`): few other entries need to know whether their
operands are complex.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from gradcli.arrays.dtypes import is_complex
from gradcli.primitives.bind import real_numbers_only
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import Coefficients, linear
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

SUBJECT = "complex numbers"

_POINTS = (0.7 + 0.4j, [-1.0 + 0.3j, 2.0 - 1.5j])

conjugate: Primitive = elementwise(
    "conjugate", "z", "the complex conjugate of a complex number",
    internal="conj", numbers="complex", jet=linear,
    forward=lambda xp, z: xp.conj(z),
    vjp=(lambda g, _y, _z: conjugate_of(g),),
    derivative="conj(g)",
    node_name="ConjBackward0",
    samples=_POINTS,
)  # fmt: skip

real_part: Primitive = elementwise(
    "real_part", "z", "the real part of a complex number",
    internal="real", numbers="complex", jet=linear,
    forward=lambda xp, z: xp.real(z),
    vjp=(lambda g, _y, _z: g,),
    derivative="g",
    node_name="RealBackward0",
    samples=_POINTS,
)  # fmt: skip

imaginary_part: Primitive = elementwise(
    "imaginary_part", "z", "the imaginary part of a complex number",
    internal="imag", numbers="complex", jet=linear,
    forward=lambda xp, z: xp.imag(z),
    vjp=(lambda g, _y, _z: g * -1j,),
    derivative="i*g",
    node_name="ImagBackward0",
    samples=_POINTS,
)  # fmt: skip


def _part_series(_primitive: Primitive, y: Any, a: Any, b: Any) -> Coefficients:
    for k in itertools.count(1):
        parts = [a.coefficient(k), b.coefficient(k)]
        if parts[0] is None and parts[1] is None:
            yield None
        else:
            yield from_parts(*(x.zeros() if part is None else part for x, part in zip((a, b), parts)))


from_parts: Primitive = elementwise(
    "complex", "real, imag", "the complex number real + i*imag",
    forward=lambda xp, a, b: xp.complex(a, b),
    vjp=(lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g * 1j),
    jet=_part_series,
    derivative="real(g), imag(g)",
    samples=((0.7, 1.3), ([-1.0, 2.0], [0.5, 0.25])),
    node_name="ComplexBackward0",
)  # fmt: skip


def conjugate_of(x: Any) -> Any:
    """The conjugate of a complex x; a real x itself."""
    return conjugate(x) if is_complex(x) else x


def real_part_of(x: Any) -> Any:
    """The real part of a complex x; a real x itself."""
    return real_part(x) if is_complex(x) else x


def any_complex(operands: Iterable[Any]) -> bool:
    """Return whether an operand is complex; lists, which are not converted yet, are not."""
    return any(is_complex(x) for x in operands if isinstance(x, complex) or hasattr(x, "dtype"))


def check_real(name: str, *operands: Any) -> None:
    """Raise EvaluationError for a complex operand of the function `name`."""
    if any_complex(operands):
        raise real_numbers_only(name)
