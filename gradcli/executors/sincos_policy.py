"""Decide when a compiled function for the sines and cosines of a program is used."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradcli.executors import sincos
from gradcli.primitives.entries import trigonometric
from gradcli.program.ir import Equation, Variable

WAVES = (trigonometric.sin, trigonometric.cos)
# Computing this many takes NumPy as long as compiling the function.
ELEMENTS_PER_COMPILE = 2**22


def is_wave(equation: Equation) -> bool:
    """Whether it is a sine or cosine that can be computed together with the other."""
    operand = equation.inputs[0] if equation.primitive in WAVES else None
    return isinstance(operand, Variable) and operand.dtype == "float64" and operand.shape != ()


class SinCosPolicy:
    """Counts the sines and cosines that runs of equations compute.

    If `reproducible`, the function is compiled from the start, because results must not depend on earlier runs.
    """

    def __init__(self, equations: Iterable[Equation], *, reproducible: bool) -> None:
        self._each = sum(math.prod(e.output.shape) for e in equations if is_wave(e))
        # The compiled function, if it is used from the start.
        self.together = (sincos.compiled() if reproducible else sincos.ready()) if self._each else None
        # Whether counting can still lead to compiling.
        self.counts = self._each > 0 and self.together is None and not reproducible
        self._left = ELEMENTS_PER_COMPILE

    def count_run(self) -> bool:
        """Count one run; return whether the code is to be regenerated with the compiled function.

        That is so once compiling pays, or if the function exists already.
        """
        self._left -= self._each
        if not self.counts or (self._left > 0 and sincos.ready() is None):
            return False
        self.counts = False
        return True
