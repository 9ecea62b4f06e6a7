"""Reads the random effects of a model: `(1 + x|group)` in its text, and `Asym|group` of the option."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gradcli.errors import BindingError, Span, UsageError, did_you_mean
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name

# The end of a random effect in a model: the columns of its groups. `a:b` are the combinations of levels, and `a/b` are
# the levels of a and the combinations.
_GROUPS = re.compile(r"\|\s*([^\W\d]\w*(?:\s*[:/]\s*[^\W\d]\w*)*)\s*\)")
_OPTION = re.compile(r"([^|]+)\|\s*([^\W\d]\w*(?:\s*[:/]\s*[^\W\d]\w*)*)\s*", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")
# What stands in comparisons and between truth values: `|` may be between truth values then.
_TRUTH = re.compile(r"[<>=!&|~]|\b(?:not|and|or)\b")
INTERCEPT = "1"


class RandomEffect(NamedTuple):
    """An effect: its `label`; the `name` in the model, to whose value it is added; and the expression of columns by which
    it is multiplied, None for 1."""

    label: str
    name: str
    factor: str | None = None


class RandomTerm(NamedTuple):
    """Effects that have a value for each level of the `columns`, or combination of levels, with a common covariance
    matrix."""

    columns: tuple[str, ...]
    effects: tuple[RandomEffect, ...]

    @property
    def group(self) -> str:
        """The groups as they are written: `Worker:Machine`."""
        return ":".join(self.columns)


class RandomTexts(NamedTuple):
    """A model with random effects: the text without them, `pooled`; the text in which names stand for them, `mixed`; the
    `terms`; and the names that are those of effects alone. Both texts are as long as what is written."""

    pooled: str
    mixed: str
    terms: Sequence[RandomTerm]
    names: Sequence[str]


def random_texts(source: str, options: Sequence[str], columns: Collection[str]) -> RandomTexts:
    """Separate the random effects from the text of a model, and add those of the `options`.

    Raises UsageError for texts that are no random effects, and BindingError for groups that are no columns.
    """
    terms: list[RandomTerm] = []
    names: list[str] = []
    pooled, mixed = source, source
    taken = {*columns, *_NAME.findall(source)}
    for found in _GROUPS.finditer(source):
        start = _opening(source, found.start())
        if start is None:
            continue
        inside, groups = source[start + 1 : found.start()], re.split(r"\s*([:/])\s*", found[1])
        if inside.endswith("|") and all(name in columns for name in groups[::2]):
            raise UsageError(
                "random effects without correlations are terms of their own",
                hint="write (1|g) + (0 + x|g) for (x||g)",
                span=Span(start, found.end()),
                source=source,
            )
        if not inside.strip() or not _is_random(inside, groups, columns):
            continue
        span = Span(start, found.end())
        _check_columns(groups[::2], columns, source, Span(found.start(1), found.end(1)))
        name = unused_name(f"r{len(names) or ''}", taken)
        taken.add(name)
        names.append(name)
        room = found.end() - start
        if len(name) > room:
            raise UsageError("too many random effects for so short a text", hint="put blanks into them")
        effects = [RandomEffect(label, name, factor) for label, factor in _effects(inside, source, span)]
        terms += [RandomTerm(each, tuple(effects)) for each in _nested(groups)]
        pooled = pooled[:start] + "0".ljust(room) + pooled[found.end() :]
        mixed = mixed[:start] + name.ljust(room) + mixed[found.end() :]
    for option in options:
        terms += _of_option(option, columns)
    _check_labels(terms)
    return RandomTexts(pooled, mixed, terms, names)


def _opening(source: str, end: int) -> int | None:
    """The index of the bracket around what stands before `end`; None where that is no bracket of its own, as behind the
    name of a function."""
    depth = 0
    for i in range(end - 1, -1, -1):
        if source[i] in ")]}":
            depth += 1
        elif source[i] in "([{":
            if not depth:
                before = source[:i].rstrip()
                is_call = before and (before[-1].isalnum() or before[-1] in "_)]")
                return i if source[i] == "(" and not is_call else None
            depth -= 1
    return None


def _is_random(inside: str, groups: Sequence[str], columns: Collection[str]) -> bool:
    """Return whether `inside` has factors of random effects, not truth values."""
    if _TRUTH.search(inside):
        return False
    return all(name in columns for name in groups[::2]) or re.match(r"\s*[01]\b", inside) is not None


def _check_columns(
    names: Sequence[str], columns: Collection[str], source: str | None = None, span: Span | None = None
) -> None:
    for name in names:
        if name not in columns:
            raise BindingError(
                f"'{name}', by which a random effect varies, is no column of the data",
                hint=did_you_mean(name, [*columns], f"they have {', '.join(columns) or 'none'}"),
                span=span,
                source=source,
            )


def _nested(groups: Sequence[str]) -> list[tuple[str, ...]]:
    """The columns of each of the groups that are written as `a`, `a:b`, or `a/b` for `a` and `a:b`."""
    found: list[tuple[str, ...]] = [()]
    for separator, name in zip(["", *groups[1::2]], groups[::2]):
        if separator == "/":
            found.append(found[-1])
        found[-1] = (*found[-1], name)
    return found


def _effects(inside: str, source: str, span: Span) -> list[tuple[str, str | None]]:
    """The labels and factors of the effects in `1 + x`; without a 1 or a 0 there is a 1 too, as in R."""
    parts = [part.strip() for part in _at_plus(inside)]
    if not all(parts) or any("-" in _outside(part) for part in parts):
        raise UsageError(
            "a random effect is a sum of columns, or of expressions of them",
            hint="(1|g), (1 + x|g), or (0 + x|g) without an intercept",
            span=span,
            source=source,
        )
    factors = [part for part in parts if part not in ("0", INTERCEPT)]
    if "0" in parts and not factors:
        raise UsageError("a random effect of 0 is none", hint="leave it out", span=span, source=source)
    intercept: list[tuple[str, str | None]] = [] if "0" in parts else [(INTERCEPT, None)]
    return [*intercept, *((factor, factor) for factor in factors)]


def _at_plus(text: str) -> list[str]:
    """The parts of a text between the `+` that are outside of brackets."""
    found, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "+" and not depth:
            found.append(text[begin:i])
            begin = i + 1
    return [*found, text[begin:]]


def _outside(text: str) -> str:
    """A text without what stands in brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(r"[(\[{][^()\[\]{}]*[)\]}]", "", text)
    return text


def _of_option(option: str, columns: Collection[str]) -> list[RandomTerm]:
    """The terms of an option `Asym|Tree`, or `ka,Cl|Subject` for parameters with correlations."""
    found = _OPTION.fullmatch(option)
    parts = [] if found is None else [part.strip() for part in found[1].split(",")]
    if found is None or not all(map(_NAME.fullmatch, parts)):
        raise UsageError(
            f"--random {option!r} does not say which parameters vary by which column",
            hint="--random 'a,b|column'; in a model, (1|column) is a number that varies",
        )
    groups = re.split(r"\s*([:/])\s*", found[2])
    _check_columns(groups[::2], columns)
    effects = tuple(RandomEffect(name, name) for name in parts)
    return [RandomTerm(each, effects) for each in _nested(groups)]


def _check_labels(terms: Sequence[RandomTerm]) -> None:
    """Raise UsageError for two effects of one name and group."""
    known: set[tuple[str, str]] = set()
    for term in terms:
        for effect in term.effects:
            if (effect.label, term.group) in known:
                raise UsageError(
                    f"two random effects of '{term.group}' are called '{effect.label}'",
                    hint="leave out one of them, or name the parameters that vary: --random 'a,b|column'",
                )
            known.add((effect.label, term.group))


def check_varied(
    terms: Sequence[RandomTerm], names: Sequence[str], model: tree.Module, parameters: Sequence[str]
) -> None:
    """Raise BindingError for an effect on what is no parameter of the model; `names` are those of effects alone."""
    for term in terms:
        for effect in term.effects:
            if effect.name not in (*parameters, *names):
                raise BindingError(
                    f"'{effect.name}' varies by '{term.group}', and is no parameter of the model",
                    hint=did_you_mean(effect.name, parameters, f"its parameters are {', '.join(parameters) or 'none'}"),
                    source=model.source,
                )
