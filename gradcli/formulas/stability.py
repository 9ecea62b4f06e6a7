"""Rewrites formulas for evaluation, not only reading: without overflow and without cancellation."""

from __future__ import annotations

from gradcli.formulas.cancellation import without_cancellation
from gradcli.formulas.documents import Formulas
from gradcli.formulas.exponential_sums import without_overflow
from gradcli.formulas.root_sum_squares import without_squares
from gradcli.formulas.text_writer import Language
from gradcli.program.ir import Program


def stable(formulas: Formulas, language: Language) -> Formulas:
    """Formulas rewritten for a language so that they agree with what `gradcli eval` computes."""

    def scaled(program: Program) -> Program:
        return without_squares(without_overflow(program), language, own=formulas.squares)

    derivatives = {key: scaled(without_cancellation(program)) for key, program in formulas.derivatives.items()}
    return formulas._replace(value=scaled(formulas.value), derivatives=derivatives)
