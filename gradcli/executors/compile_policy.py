"""The compile policy: decide when compiling the equations of a program pays, as it is run repeatedly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from gradcli.executors import llvm_loops, llvm_ufuncs, sincos
from gradcli.executors.sincos import SinCosPolicy
from gradcli.program.ir import Equation
from gradcli.timing import phase

# Compiling an equation takes as long as NumPy takes for ELEMENTS_PER_COMPILE elements, and loading the compiler as long
# as compiling _LOADING equations.
ELEMENTS_PER_COMPILE = 2**20
_LOADING = 32
# The maximum number of equations that are compiled; more would occupy the compiler for longer than some seconds.
_MOST_EQUATIONS = 10_000
# Calling a NumPy function takes as long as computing this many elements.
_CALL = 512


class CompilePolicy:
    """Counts the work of runs until compiling pays.

    What is compiled are a function that computes sine and cosine `together`, and loops for equations that are `merged`.
    Loops give the same results as NumPy, so that the time of the switch does not matter; for sines see `SinCosPolicy`.
    """

    def __init__(self, equations: Sequence[Equation], *, reproducible: bool) -> None:
        self._sines = SinCosPolicy(equations, reproducible=reproducible)
        self.together: sincos.SinCos | None = self._sines.together
        self.merged = False
        shapes = [e.output.shape for e in equations if llvm_loops.takes(e)]
        # A loop over a single equation would not be faster than NumPy.
        some = 1 < len(shapes) <= _MOST_EQUATIONS
        self._each = sum(math.prod(shape) + _CALL for shape in shapes) if some else 0
        self._left = ELEMENTS_PER_COMPILE * (len(shapes) + _LOADING)
        self._once = Lock()
        self._update()

    def count_run(self) -> bool:
        """Count one run; return whether something new is to be compiled. Of several threads, only one gets True."""
        sines, loops = self._sines.count_run(), self._are_many()
        if sines:
            with phase("compile"):
                self.together = sincos.compiled()
        self.merged = self.merged or loops
        self._update()
        return sines or loops

    def _update(self) -> None:
        # Whether counting can still lead to compiling.
        self.counts = self._sines.counts or (self._each > 0 and not self._once.locked())

    def _are_many(self) -> bool:
        self._left -= self._each
        return self._left < 0 < self._each and self._once.acquire(blocking=False) and llvm_ufuncs.is_available()
