"""Reads the notations of derivatives, `x'`, `dx/dt`, `d2x/dt2` and `d²x/dt²`, as names that end in primes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.named_tuples import NamedTuple

# The letter that stands for a prime at the end of a name: an apostrophe begins a string.
PRIME = "\u02b9"

_DIGITS = str.maketrans("²³⁴⁵⁶⁷⁸⁹", "23456789")
_ORDER = r"[²³⁴-⁹]|[2-9](?=[^\W\d])|(?:\^|\*\*)[2-9]"
_LEIBNIZ = rf"(?<![\w.])d({_ORDER})?([^\W\d]\w*)\s*/\s*d([^\W\d]\w*(?:(?:\^|\*\*)[2-9])?)(?![\w(])"
_QUOTIENT = re.compile(_LEIBNIZ)
_BEGINNING = r"(?:^|[;\n])[ \t]*"
_LEFT_QUOTIENT = re.compile(rf"{_BEGINNING}(?P<side>{_LEIBNIZ})\s*=(?!=)")
_LEFT_PRIMED = re.compile(rf"{_BEGINNING}([^\W\d]\w*?)({PRIME}+)\s*=(?!=)")
# Texts and comments, in which an apostrophe is not a prime; and names with primes, which may be typographic ones.
_PRIMED = re.compile(
    r"\"[^\"\n]*\"|#[^\n]*|(?P<name>[^\W\d]\w*)(?P<primes>['’′]+)|'[^'\n]*'|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\w+"
)


class MarkedText(NamedTuple):
    """A text of differential equations in which derivatives are names with primes; places in it are those of the source.

    `time` is the name that it differentiates by, and `states` are those that have equations.
    """

    text: str
    time: str
    states: frozenset[str]


class _Quotient(NamedTuple):
    """A derivative written as a quotient."""

    state: str
    time: str
    order: int
    span: Span


def marked(source: str) -> MarkedText:
    """Mark the derivatives in a text.

    Raises ProgramSyntaxError where the orders in a quotient differ, and where equations differentiate by several names.
    """
    text = _PRIMED.sub(_with_marks, source)
    left = [_quotient(m, source) for m in _LEFT_QUOTIENT.finditer(text)]
    time = left[0].time if left else "t"
    other = next((q for q in left if q.time != time), None)
    if other is not None:
        raise ProgramSyntaxError(
            f"this differentiates by '{other.time}', and another equation by '{time}'",
            hint="one system has one independent variable",
            span=other.span,
            source=source,
        )
    states = {q.state for q in left} | {m[1] for m in _LEFT_PRIMED.finditer(text)}

    return MarkedText(_without_quotients(text, source, time, states), time, frozenset(states))


def expression(source: str, time: str, states: Collection[str]) -> str:
    """An expression in which the derivatives of states by time are marked."""
    return _without_quotients(_PRIMED.sub(_with_marks, source), source, time, states)


def _without_quotients(text: str, source: str, time: str, states: Collection[str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        # A quotient of two parameters that happen to be called so stays one.
        if match[2] not in states:
            return match[0]
        found = _quotient(match, source)
        return (found.state + PRIME * found.order).ljust(len(match[0])) if found.time == time else match[0]

    return _QUOTIENT.sub(replaced, text)


def _with_marks(match: re.Match[str]) -> str:
    if match["name"] is None:
        return match[0]
    return match["name"] + PRIME * len(match["primes"])


def _quotient(match: re.Match[str], source: str) -> _Quotient:
    *_, written, state, below = match.groups()[-3:]
    order = int(written.translate(_DIGITS)[-1]) if written else 1
    time, said = below, 1
    if written and (tail := re.search(r"(?:\^|\*\*)?[2-9²³⁴-⁹]$", below)):
        time, said = below[: tail.start()], int(tail[0].translate(_DIGITS)[-1])
    span = Span(*match.span("side") if "side" in match.re.groupindex else match.span())
    if said != order:
        raise ProgramSyntaxError(
            "the orders of this derivative differ",
            hint=f"write d{order}{state}/d{time}{order}",
            span=span,
            source=source,
        )
    return _Quotient(state, time, order, span)


def is_derivative(text: str) -> bool:
    """Return whether a text is a name with primes, or a quotient such as dx/dt."""
    return _QUOTIENT.fullmatch(text) is not None or re.fullmatch(r"[^\W\d]\w*['’′]+", text) is not None


def readable(text: str) -> str:
    """A text with apostrophes for the letter that stands for a prime."""
    return text.replace(PRIME, "'")


def below(name: str) -> Iterator[str]:
    """The names of a state and of its derivatives, of ascending order, below the derivative `name`."""
    base = name.rstrip(PRIME)
    for order in range(len(name) - len(base)):
        yield base + PRIME * order
