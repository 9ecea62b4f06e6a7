"""What is worth to be compiled for the equations of a program, as they are run again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from gradcli.executors import loop_text, native, sincos
from gradcli.executors.waves import Waves
from gradcli.program.ir import Equation
from gradcli.timing import phase

# So many elements take NumPy as long as it takes to compile an equation, and so many equations as to load the compiler.
MUCH = 2**20
_LOADING = 32
# The compiler is not kept for longer than some seconds.
_MOST_EQUATIONS = 10_000
# Calling a function of NumPy takes as long as so many elements.
_CALL = 512


class Demand:
    """Counts what runs compute, until there is enough to pay for compiling: sines and cosines `together`, and loops for
    equations that are `merged`. Loops give the numbers that NumPy gives, so that it makes no difference when that is;
    for sines see `Waves`."""

    def __init__(self, equations: Sequence[Equation], *, reproducible: bool) -> None:
        self._waves = Waves(equations, reproducible=reproducible)
        self.together: sincos.SinCos | None = self._waves.together
        self.merged = False
        shapes = [e.output.shape for e in equations if loop_text.takes(e)]
        # One equation takes NumPy no longer.
        some = 1 < len(shapes) <= _MOST_EQUATIONS
        self._each = sum(math.prod(shape) + _CALL for shape in shapes) if some else 0
        self._left = MUCH * (len(shapes) + _LOADING)
        self._once = Lock()
        self._update()

    def is_met(self) -> bool:
        """Count one run; whether there is more to be compiled than there was, for one of several threads."""
        waves, loops = self._waves.are_many(), self._are_many()
        if waves:
            with phase("compile"):
                self.together = sincos.compiled()
        self.merged = self.merged or loops
        self._update()
        return waves or loops

    def _update(self) -> None:
        # Whether something is gained by counting.
        self.counts = self._waves.counts or (self._each > 0 and not self._once.locked())

    def _are_many(self) -> bool:
        self._left -= self._each
        return self._left < 0 < self._each and self._once.acquire(blocking=False) and native.is_there()
