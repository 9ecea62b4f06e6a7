"""What is reported of the fits of many groups: a table with a line for each, and a summary of failures and warnings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import IO, Any

from gradcli.io import json_text
from gradcli.models.fitting.results.fit_results import Fit, table_numbers
from gradcli.models.results import as_json
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats import new_tables

# A number in a warning that is not part of a name. Warnings that differ in such numbers only are summarised as one.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_PLACE = "{}"
# Largest number of groups named for a warning.
_MAX_NAMED_GROUPS = 3


class UnconvergedFit(NamedTuple):
    """A fit that did not converge: its group, None where there are no groups, and why."""

    group: str | None
    message: str


class WarningSummary(NamedTuple):
    """The number of fits with a warning, the first of their groups, and the least and the largest of each number in its
    text, as they are written."""

    times: int
    groups: Sequence[str | None]
    least: Sequence[str]
    largest: Sequence[str]

    def plus(self, later: WarningSummary) -> WarningSummary:
        return WarningSummary(
            self.times + later.times,
            [*self.groups, *later.groups][:_MAX_NAMED_GROUPS],
            [min(pair, key=float) for pair in zip(self.least, later.least)],
            [max(pair, key=float) for pair in zip(self.largest, later.largest)],
        )


class FitSummary(NamedTuple):
    """The number of `fits`, the number of those that are `open` (did not converge), the `first` of these, and the
    `warnings` by their text, with `{}` in place of numbers."""

    fits: int = 0
    open: int = 0
    first: UnconvergedFit | None = None
    warnings: Mapping[str, WarningSummary] = {}

    def plus(self, later: FitSummary) -> FitSummary:
        """The account of the fits of this account and a later one."""
        warnings = dict(self.warnings)
        for text, warned in later.warnings.items():
            warnings[text] = warnings[text].plus(warned) if text in warnings else warned
        return FitSummary(self.fits + later.fits, self.open + later.open, self.first or later.first, warnings)

    def told(self) -> list[str]:
        """The text of each warning once: with the range of a number that differs between fits, and, where there are
        several fits, with the number of groups that have it and the first of these."""
        found = []
        for text, warned in self.warnings.items():
            first, *rest = text.split(_PLACE)
            ranges = (a if a == b else f"{a} to {b}" for a, b in zip(warned.least, warned.largest))
            found.append(first + "".join(number + part for number, part in zip(ranges, rest)) + self._which(warned))
        return found

    def _which(self, warned: WarningSummary) -> str:
        if self.fits <= 1:
            return ""
        others = warned.times - len(warned.groups)
        more = f" and {others:,} other{'s' * (others != 1)}" if others else ""
        groups = "group" if warned.times == 1 else f"{warned.times:,} groups:"
        return f" (in {groups} {', '.join(map(repr, warned.groups))}{more})"

    def as_json(self) -> dict[str, Any]:
        """The account as JSON data, from which `of_json` restores it."""
        warnings = {text: warned._asdict() for text, warned in self.warnings.items()}
        return self._asdict() | {"first": self.first and self.first._asdict(), "warnings": warnings}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> FitSummary:
        warnings = {text: WarningSummary(**warned) for text, warned in told["warnings"].items()}
        return cls(told["fits"], told["open"], told["first"] and UnconvergedFit(**told["first"]), warnings)


def summary_of(fits: Sequence[Fit]) -> FitSummary:
    """The account of these fits."""
    unfitted = [UnconvergedFit(fit.group, fit.message) for fit in fits if not fit.converged]
    warnings: dict[str, WarningSummary] = {}
    for fit in fits:
        for warning in fit.warnings:
            text, numbers = _NUMBER.sub(_PLACE, warning), _NUMBER.findall(warning)
            own = WarningSummary(1, [fit.group], numbers, numbers)
            warnings[text] = warnings[text].plus(own) if text in warnings else own
    return FitSummary(len(fits), len(unfitted), unfitted[0] if unfitted else None, warnings)


# Attributes of `Fit` in the table: the first stands before the estimates, the others behind them.
_MEMBERS = ("n", "rss", "s", "r2", "converged")


def columns_of(fits: Sequence[Fit], by: str) -> Mapping[str, list[Any]]:
    """The columns of a table of at least one fit: the group, the number of rows, the estimates and what is derived
    from them with their errors, and the goodness of fit."""
    columns: Mapping[str, list[Any]] = {by: [fit.group for fit in fits]}
    numbers = table_numbers(fits, _MEMBERS)
    columns = new_tables.beside(columns, {"n": numbers.members["n"]})
    for place, (name, estimate) in enumerate(fits[0].estimates.items()):
        of_one = {name: numbers.values[:, place].tolist()}
        if not estimate.fixed:
            of_one[f"{name}_error"] = numbers.errors[:, place].tolist()
        columns = new_tables.beside(columns, of_one)
    for name in fits[0].derived or ():
        quantities = [(fit.derived or {})[name] for fit in fits]
        of_one = {name: [each.value for each in quantities], f"{name}_error": [each.error for each in quantities]}
        columns = new_tables.beside(columns, of_one)
    return new_tables.beside(columns, {name: numbers.members[name] for name in _MEMBERS[1:]})


def write(fits: Sequence[Fit], model: str, by: str, format: str, stream: IO[bytes]) -> None:
    """Write the table as CSV, or all attributes of each fit as JSON lines where the format is `jsonl`."""
    if format == "csv":
        new_tables.write(columns_of(fits, by), format, stream)
    else:
        stream.writelines(json_text.result_line({"model": model, **as_json(fit)}).encode() for fit in fits)
