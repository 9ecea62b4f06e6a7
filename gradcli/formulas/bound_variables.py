"""Writes integrals and sums, whose body is a program with a bound variable, in the output languages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from gradcli.formulas.naming import Names
from gradcli.formulas.text_writer import ATOM, Fragment, Language, Spelling, write
from gradcli.program.ir import Equation

# A length up to which no part of a body gets a name.
_INLINE = 1_000_000


def with_body(language: Callable[[], Language], names: str, form: str, level: int = ATOM) -> Spelling:
    """The spelling of a primitive of two limits and a body.

    The `form` has places for `body`, `variable`, `low` and `high`; the variable gets the first of some one-letter names
    that no operand mentions.
    """

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        low, high, *reads = operands
        variable = _free_name(names, [o.text for o in operands])
        program = equation.params["body"].program
        inputs = Names(language().naming)
        texts = [variable, *(read.at(ATOM) for read in reads)]
        inputs.inputs = {v.name or "": text for v, text in zip(program.inputs, texts)}
        body = write(program, language()._replace(parts=False), inputs, short=_INLINE).result
        return Fragment(form.format(body=body, variable=variable, low=low.text, high=high.text), level)

    return spelling


def _free_name(names: str, texts: Sequence[str]) -> str:
    """The first of the one-letter names, or of these with a number, that no text has as a word."""
    taken = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    candidates = itertools.chain(names, (f"{names[0]}{n}" for n in itertools.count(1)))
    return next(name for name in candidates if name not in taken)
