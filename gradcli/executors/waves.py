"""Sines and cosines of a program: how many there were, and when a function is compiled for them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradcli.executors import sincos
from gradcli.primitives import trigonometric
from gradcli.program.ir import Equation, Variable

WAVES = (trigonometric.sin, trigonometric.cos)
# So many take as long as it takes to compile a function for them.
MANY = 2**22


def is_wave(equation: Equation) -> bool:
    """Whether it is a sine or cosine that can be computed together with the other."""
    operand = equation.inputs[0] if equation.primitive in WAVES else None
    return isinstance(operand, Variable) and operand.dtype == "float64" and operand.shape != ()


class Waves:
    """Counts the sines and cosines that runs of equations compute; those of `reproducible` ones are compiled from the
    start, as they must not depend on how many there were before.
    """

    def __init__(self, equations: Iterable[Equation], *, reproducible: bool) -> None:
        self._each = sum(math.prod(e.output.shape) for e in equations if is_wave(e))
        # The compiled function, if it is to be used from the start.
        self.together = (sincos.compiled() if reproducible else sincos.ready()) if self._each else None
        # Whether something is gained by counting.
        self.counts = self._each > 0 and self.together is None and not reproducible
        self._left = MANY

    def are_many(self) -> bool:
        """Count one run; whether code for a compiled function is to be made, once there are enough to pay for it."""
        self._left -= self._each
        if not self.counts or (self._left > 0 and sincos.ready() is None):
            return False
        self.counts = False
        return True
