"""Taylor polynomials as text, from the constant up, and from that text in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

from gradcli.formulas.documents import SHORT, Code, one_line
from gradcli.formulas.languages import find
from gradcli.formulas.naming import names_of
from gradcli.formulas.writing import write
from gradcli.program.ir import Program

# Of a longer fraction a person reads its decimal.
_LONGEST = 32
# The languages that a polynomial is written in: as a formula, and as a function.
FORMULAS, FUNCTIONS = ("text", "latex"), ("python", "c")


class TaylorTerm(NamedTuple):
    """A coefficient, as a float or a decimal, the fraction that it is where that is known, and powers of the variables."""

    powers: Sequence[int]
    value: Any
    fraction: Fraction | None = None

    @property
    def is_told(self) -> bool:
        """Whether its value is a number, and not a bound of one that is not told from 0."""
        return not str(self.value).startswith("|")


def polynomial(terms: Sequence[TaylorTerm], center: Mapping[str, Any]) -> str:
    """The sum of terms that are not 0 in the expression language; the centre has the numbers, which may be fractions, that
    are taken from the variables of these names."""
    variables = [_shifted(name, at) for name, at in center.items()]
    found = ""
    for term in terms:
        sign, text = _written(term, variables)
        if text:
            found += f" {sign} {text}" if found else f"-{text}" if sign == "-" else text
    return found or "0"


def _shifted(name: str, at: Any) -> str:
    sign, size = _signed(at)
    return name if size == "0" else f"({name} {'+' if sign == '-' else '-'} {size})"


def _signed(number: Any) -> tuple[str, str]:
    """The sign of a number, and its size as text."""
    text = str(number)
    text = text.removesuffix(".0")
    return ("-", text[1:]) if text.startswith("-") else ("+", text)


def _written(term: TaylorTerm, variables: Sequence[str]) -> tuple[str, str]:
    """The sign of a term and the rest; "" for one that is 0, or not told from it."""
    exact, value = term.fraction, term.value
    if exact is not None and len(str(exact)) <= _LONGEST:
        value, below = exact.numerator, exact.denominator
    else:
        below = 1
    sign, size = _signed(value)
    if size == "0" or not term.is_told:
        return sign, ""
    powers = [v if n == 1 else f"{v}**{n}" for v, n in zip(variables, term.powers) if n]
    factors = powers if powers and size == "1" else [size, *powers]
    return sign, "*".join(factors) + (f"/{below}" if below != 1 else "")


def formula(program: Program, language: str, *, name: str, doc: str) -> str:
    """A polynomial as LaTeX, or in a language of FUNCTIONS as a function of this name; the program is its text, read."""
    spoken = find(language)
    if language not in FUNCTIONS:
        return write(program, spoken).result
    # Modules of languages with functions have one of their name that writes them.
    function = getattr(import_module(f"gradcli.formulas.{language}"), language)
    code: Code = function(program, names_of(program, spoken.naming), name=name, doc=one_line(doc), short=SHORT)
    return code.whole
