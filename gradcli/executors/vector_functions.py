"""The functions that LLVM vectorises, and the policy that decides when a program uses them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gradcli.executors.function_pairs import FunctionPair, Together
from gradcli.executors.hyperbolic import TANH_AND_SECH_SQUARE
from gradcli.executors.sincos import SINE_AND_COSINE
from gradcli.program.ir import Equation
from gradcli.timing import phase

PAIRS = (SINE_AND_COSINE, TANH_AND_SECH_SQUARE)
# Computing this many elements takes NumPy as long as compiling a pair.
ELEMENTS_PER_COMPILE = 2**22

# The compiled functions that a program uses instead of NumPy's.
Used = Mapping[FunctionPair, Together]


def pair_of(equation: Equation) -> FunctionPair | None:
    """The pair with the function of an equation, if it can be computed together with the other function."""
    return next((pair for pair in PAIRS if pair.computes(equation)), None)


class PairsPolicy:
    """Counts the elements for which runs of equations compute the functions of each pair.

    If `reproducible`, the pairs are compiled from the start, because results must not depend on earlier runs.
    """

    def __init__(self, equations: Iterable[Equation], *, reproducible: bool) -> None:
        self._each: dict[FunctionPair, int] = {}
        for equation in equations:
            if pair := pair_of(equation):
                self._each[pair] = self._each.get(pair, 0) + math.prod(equation.output.shape)
        made = {pair: pair.compiled() if reproducible else pair.ready() for pair in self._each}
        self.used: Used = {pair: function for pair, function in made.items() if function is not None}
        # The pairs that may still be compiled, with the elements that are to be computed before.
        self._left = {} if reproducible else dict.fromkeys(self._each.keys() - self.used.keys(), ELEMENTS_PER_COMPILE)

    def may_compile(self) -> bool:
        """Return whether counting can still lead to compiling."""
        return bool(self._left)

    def count_run(self) -> bool:
        """Count one run; return whether the code is to be regenerated, because it can use other functions.

        That is so once compiling pays, or if a function exists already.
        """
        for pair in self._left:
            self._left[pair] -= self._each[pair]
        due = [pair for pair, left in self._left.items() if left <= 0 or pair.ready() is not None]
        for pair in due:
            self._use(pair)
        return bool(due)

    def _use(self, pair: FunctionPair) -> None:
        with phase("compile"):
            function = pair.compiled()
        if function is not None:
            self.used = {**self.used, pair: function}
        # A new dict, because other threads may be counting.
        self._left = {other: left for other, left in self._left.items() if other is not pair}
