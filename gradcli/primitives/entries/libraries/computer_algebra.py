"""Functions of SymPy and Julia that the language has under no name of its own."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from gradcli.errors import CallError
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.comparisons import less, maximum, minimum, where
from gradcli.primitives.entries.special_functions.integrals import gammainc, gammaincc
from gradcli.primitives.entries.special_functions.special import gamma, lgamma
from gradcli.primitives.operation import Composite

SUBJECT = "special"

_PAIR = ([0.3, -1.2], [0.8, -2.5])


def _extreme(name: str, doc: str, of_two: Any) -> Composite:
    def definition(*values: Any) -> Any:
        if not values:
            raise CallError(f"'{name}' needs a value")
        return reduce(of_two, values)

    return Composite(
        name, "*values", f"{doc} of all values, element by element", definition,
        derivative=of_two.derivative, domain="smooth where no two are equal",
        subject="elementwise", samples=(_PAIR,), example=f"'{name}(x, y, 1)' x=0.7 y=1.3",
    )  # fmt: skip


largest = _extreme("Max", "the largest", maximum)
smallest = _extreme("Min", "the smallest", minimum)

loggamma = Composite(
    "loggamma", "x", "logarithm of gamma(x), nan where x < 0 and it is complex",
    lambda x: where(less(x, 0), math.nan, lgamma(where(less(x, 0), 1.0, x))),
    derivative="g*digamma(x)",
    domain="x > 0",
    samples=(0.7, [0.4, 2.5]),
)  # fmt: skip

lowergamma = Composite(
    "lowergamma", "s, x", "lower incomplete gamma function, gamma(s)*gammainc(s, x)",
    lambda s, x: multiply(gamma(s), gammainc(s, x)),
    derivative="by s that of the product, g*x**(s - 1)*exp(-x)",
    domain="s > 0, x > 0",
    samples=((2.5, 0.7), ([1.5, 3.0], [0.4, 2.5])),
)  # fmt: skip
uppergamma = Composite(
    "uppergamma", "s, x", "upper incomplete gamma function, gamma(s)*gammaincc(s, x)",
    lambda s, x: multiply(gamma(s), gammaincc(s, x)),
    derivative="by s that of the product, -g*x**(s - 1)*exp(-x)",
    domain="s > 0, x > 0",
    samples=((2.5, 0.7), ([1.5, 3.0], [0.4, 2.5])),
)  # fmt: skip
