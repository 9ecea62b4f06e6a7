"""Suggestions for unknown names that look like products written without `*`: `mc` for m*c, `sinx` for sin(x)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gradcli.errors import Proposal, Span, did_you_mean, with_word_replaced
from gradcli.language.syntax import tree
from gradcli.language.syntax.foreign_notations import FUNCTIONS_WITHOUT_PARENTHESES, GREEK
from gradcli.primitives import table

# Longer names are not split: the time is proportional to their length times the number of names.
_LONGEST = 64
# Products with more factors are not suggested.
_MOST_FACTORS = 6
# Numbers within a name, and constants that may be factors of it.
_DIGITS = re.compile(r"\d+(?!_)")
_NUMBERS = ("pi", "π", "e")
_NUMBER_AND_REST = re.compile(r"(\d*)(.*)", re.DOTALL)


def split_into_factors(name: str, given: Collection[str]) -> str | None:
    """A name split into a product of known names, or a function of one; None where that is impossible."""
    if len(name) > _LONGEST:
        return None
    factors = _factors(name, given)
    if 1 < len(factors) <= _MOST_FACTORS:
        return "*".join(factors)
    for end in range(len(name) - 1, 1, -1):
        number = _DIGITS.match(name, end)
        start = number.end() if number is not None else end
        if table.find(name[:end]) is not None and (inner := _factors(name[start:], given)):
            return f"{name[:end]}({'*'.join((number[0], *inner) if number else inner)})"
    return None


def split_function_name(name: str, given: Collection[str]) -> str | None:
    """The name of a called function, without its arguments, split into factors and a function; None if impossible."""
    if len(name) > _LONGEST:
        return None
    for end in range(1, len(name) - 1):
        if table.find(name[end:]) is not None and (factors := _factors(name[:end], given)):
            return "*".join((*factors, name[end:]))
    return None


# Operators after which a product needs parentheses.
_BINDING = re.compile(r"(?:/|÷|%|@|\^|\*\*)\s*[-+]?\s*$")


def as_operand(product: str, source: str, span: Span) -> str:
    """A product as replacement of the operand at `span`, in parentheses where the operators around it need them."""
    before = _BINDING.search(source, max(0, span.start - _LONGEST), span.start)
    return f"({product})" if before or source[span.end : span.end + 1] in (".", "[") else product


# Usual names of variables in books.
_VARIABLES = "xyzθφ"


def function_of_a_letter(name: str, reads: Collection[str]) -> str | None:
    """The call that a name such as `sinx` or `ln2x` may stand for, of a usual variable or a name in `reads`, or
    None."""
    for function in FUNCTIONS_WITHOUT_PARENTHESES:
        number, letter = _NUMBER_AND_REST.fullmatch(name.removeprefix(function)).groups()  # type: ignore[union-attr]
        if name.startswith(function) and letter and (letter in _VARIABLES or letter in reads):
            return f"{function}({number}*{letter})" if number else f"{function}({letter})"
    return None


# The most letters of a name that is taken for a product of letters.
_MOST_LETTERS = 3


def product_of_letters(name: str, factor: str) -> str | None:
    """A short name as the product of its letters where the letter `factor` is one of them, as k*x for `kx`; else None."""
    # A name such as `dt` is a difference.
    is_other = name in GREEK or name.startswith(("d", "Δ", "δ"))
    may_be = 1 < len(name) <= _MOST_LETTERS and name.isalpha() and len(factor) == 1 and factor in name
    return "*".join(name) if may_be and not is_other else None


def _factors(text: str, given: Collection[str]) -> tuple[str, ...]:
    """The fewest names and constants that make up a text, at least one of them in `given`; empty if there are none."""
    found: list[tuple[str, ...] | None] = [()]
    for end in range(1, len(text) + 1):
        ways = [
            (*before, text[start:end])
            for start, before in enumerate(found)
            if before is not None and (text[start:end] in given or text[start:end] in _NUMBERS)
        ]
        found.append(min(ways, key=len, default=None))
    factors = found[-1] or ()
    return factors if any(f in given for f in factors) else ()


def call_of_last_function(program: tree.Module) -> Proposal | None:
    """The hint for a program that ends with the definition of a function without calling it, or None."""
    last = program.body[-1]
    if isinstance(last, tree.Evaluate) and isinstance(last.value, tree.Lambda):
        body = program.source[last.value.body.span.start : last.value.body.span.end]
        written = program.source[: last.span.start] + body
        return Proposal(f"a function is called for its value: write {written}", written, whole=True)
    if not isinstance(last, tree.Define) or isinstance(last.body, tree.Block):
        return None
    written = f"{program.source.rstrip(' ;')}; {last.name}({', '.join(p.name for p in last.parameters)})"
    return Proposal(f"a function is called for its value: write {written}", written, whole=True)


def unread_hint(name: str, reads: Sequence[str], given: Collection[str], program: tree.Module) -> str:
    """The hint for a given value whose name `name` the program does not read; `reads` are the names that it reads."""
    source, last = program.source, program.body[-1]
    call = call_of_last_function(program)
    function = last.value if isinstance(last, tree.Evaluate) else last
    if call is not None and any(p.name == name for p in getattr(function, "parameters", ())):
        return call
    if re.search(rf"[\w)\]]\s*\.\s*{re.escape(name)}(?![\w(])", source):
        written = re.sub(rf"\s*\.\s*{re.escape(name)}(?![\w(])", lambda _: f" @ {name}", source)
        return Proposal(f"write {written} for the product of vectors or matrices", written, whole=True)
    for read in reads:
        meant = split_into_factors(read, given) if name in read and read not in given else None
        if meant is not None:
            place = re.search(rf"(?<!\w){re.escape(read)}(?!\w)", source)
            meant = as_operand(meant, source, Span(*place.span())) if place else meant
            written = with_word_replaced(source, read, meant)
            return Proposal(f"'{read}' is one name: write {meant}", written, whole=True)
    listed = ", ".join(f"'{r}'" for r in reads)
    return did_you_mean(name, reads, f"it reads {listed}" if listed else "it reads no names") or ""
