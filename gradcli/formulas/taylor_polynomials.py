"""Writes Taylor polynomials in the expression language and, from that text, in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

from gradcli.formulas.languages import find
from gradcli.formulas.writing.documents import SHORT, Code, one_line
from gradcli.formulas.writing.naming import names_of
from gradcli.formulas.writing.text_writer import write
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Program

# A fraction with more characters is written as a decimal.
_LONGEST = 32
# The languages that write a polynomial as a formula, and those that write it as a function.
FORMULAS, FUNCTIONS = ("text", "latex"), ("python", "c")


class TaylorTerm(NamedTuple):
    """A term: powers of the variables, the coefficient as a number or decimal, and the exact fraction if known."""

    powers: Sequence[int]
    value: Any
    fraction: Fraction | None = None

    @property
    def is_known(self) -> bool:
        """True if the coefficient is a number, and not a bound ("|…| < 1e-10000") of one that may be 0."""
        return not str(self.value).startswith("|")


def polynomial(terms: Sequence[TaylorTerm], center: Mapping[str, Any]) -> str:
    """The sum of the nonzero terms in the expression language; `center` maps each variable to the number (or fraction)
    that is subtracted from it."""
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
    """The sign of a number and its absolute value as text; of a complex one with two parts, the sign of its real part
    and the rest in parentheses."""
    if isinstance(number, complex):
        return _signed_complex(number)
    text = str(number)
    text = text.removesuffix(".0")
    return ("-", text[1:]) if text.startswith("-") else ("+", text)


def _signed_complex(number: complex) -> tuple[str, str]:
    if not number.imag:
        return _signed(number.real)
    if not number.real:
        sign, size = _signed(number.imag)
        return sign, f"{size}j"
    sign, size = _signed(number.real)
    of_imaginary, imaginary = _signed(-number.imag if sign == "-" else number.imag)
    return sign, f"({size} {of_imaginary} {imaginary}j)"


def _written(term: TaylorTerm, variables: Sequence[str]) -> tuple[str, str]:
    """The sign and text of a term; the text is "" for a term that is 0 or may be."""
    exact, value = term.fraction, term.value
    if exact is not None and len(str(exact)) <= _LONGEST:
        value, below = exact.numerator, exact.denominator
    else:
        below = 1
    sign, size = _signed(value)
    if size == "0" or not term.is_known:
        return sign, ""
    powers = [v if n == 1 else f"{v}**{n}" for v, n in zip(variables, term.powers) if n]
    factors = powers if powers and size == "1" else [size, *powers]
    return sign, "*".join(factors) + (f"/{below}" if below != 1 else "")


def formula(
    program: Program, language: str, *, name: str, doc: str, complex_names: frozenset[str] | None = None
) -> str:
    """A polynomial as LaTeX or, in a language of FUNCTIONS, as a function `name`; `program` is its recorded text.

    Where it has complex numbers, `complex_names` are the inputs that are complex.
    """
    spoken = find(language)
    if language not in FUNCTIONS:
        return write(program, spoken).result
    # Each language with functions has a module whose function of the same name writes them.
    module = import_module(f"gradcli.formulas.languages.{language}")
    function = getattr(module, language)
    if complex_names is not None:
        function = module.of_complex(complex_names)
    code: Code = function(program, names_of(program, spoken.naming), name=name, doc=one_line(doc), short=SHORT)
    return code.whole
