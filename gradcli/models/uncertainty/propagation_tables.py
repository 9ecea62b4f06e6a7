"""The tables that a propagated uncertainty is printed as; its class, whose method calls these, is not imported here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.io.text_tables import Table
from gradcli.models.results import as_json
from gradcli.models.uncertainty.coverage import coverage_factor, whole_dof
from gradcli.models.uncertainty.significant_digits import STATED_DIGITS, stated_text

# If the standard deviation of samples exceeds that of their interval by this factor, it is due to a few outliers.
_FAR_DRAWS = 3.0
# The maximum number of rows of a budget in a table; the largest contributions are shown.
_MOST_ROWS = 50


def tables(found: Any, *, in_digits: bool = False) -> list[Table]:
    """The tables of a result; those with proved digits show all of them."""
    of_one = _in_digits if in_digits else _tables_of
    labels = [*found.value] if isinstance(found.value, dict) else [None]
    made = [table for label in labels for table in of_one(found, label)]
    if found.covariance is not None:
        matrix = as_json(found.covariance)
        rows = [(str(label), *map(_brief, row)) for label, row in zip(labels, matrix)]
        made.append(Table(("covariance", *map(str, labels[: len(rows)])), rows))
    return made


def _of(found: Any, label: str | None) -> Callable[[str], Any]:
    """A function that returns a field of the result with this label."""

    def of(name: str) -> Any:
        part = getattr(found, name)
        return part if label is None or part is None else part[label]

    return of


def _tables_of(found: Any, label: str | None) -> list[Table]:
    """The tables of one result: its values and its budget."""
    of = _of(found, label)
    value, u, k = of("value"), of("u"), of("k")
    rows = [
        (label or "value", stated_text(value, u)),
        ("relative uncertainty", f"{of('relative'):.2g}"),
        ("degrees of freedom", _effective(of("dof"))),
        (f"interval of {found.level:.15g}", f"{stated_text(value, k * u)}  (k = {k:.4g})"),
    ]
    second, sampled = of("second_order"), of("monte_carlo")
    if second is not None:
        rows.append(("to second order", stated_text(second.mean, second.u)))
    if sampled is not None:
        digits = sampled.digits or STATED_DIGITS
        rows.append((f"{sampled.samples:,} samples", stated_text(sampled.mean, sampled.u, digits)))
        ends = ", ".join(_to_place(end, _spread(sampled, found.level), digits) for end in sampled.interval)
        rows.append((f"interval of {found.level:.15g}", f"[{ends}]"))
    limits = of("limits")
    if limits is not None:
        rows += _limits(limits)
    made = [Table((), rows), _budget(of("budget"))]
    sobol, morris = of("sobol"), of("morris")
    if sobol is not None:
        made.append(_sobol(sobol))
    if morris is not None:
        made.append(_morris(morris))
    return made


def _limits(found: Any) -> list[tuple[str, str]]:
    rows = [("limits in the worst case", f"[{', '.join(found.worst_case)}]")]
    if found.reached is not None:
        rows.append(("of which are reached", f"[{', '.join(found.reached)}]"))
    half = (found.rss[1] - found.rss[0]) / 2
    for name, ends in (("worst case, linear", found.linear), ("root of the sum of squares", found.rss)):
        rows.append((name, f"[{', '.join(_to_place(end, half, STATED_DIGITS) for end in ends)}]"))
    return rows


def _sobol(found: Any) -> Table:
    rows = [
        (each.name, stated_text(each.first, each.first_error), stated_text(each.total, each.total_error))
        for each in found.indices
    ]
    return Table(("Sobol' index", "first order", "total"), rows)


def _morris(found: Any) -> Table:
    rows = [
        (each.name, _brief(each.mu), f"{_brief(each.mu_star)} ± {each.mu_star_error:.2g}", _brief(each.sigma))
        for each in found.effects
    ]
    return Table(("elementary effect", "mu", "mu*", "sigma"), rows)


def _in_digits(found: Any, label: str | None) -> list[Table]:
    """The same tables with proved digits, of which all are printed."""
    of = _of(found, label)
    rows = [
        (label or "value", of("value")),
        ("standard uncertainty", of("u")),
        ("relative uncertainty", of("relative")),
        ("degrees of freedom", _effective_in_digits(of("dof"))),
        ("coverage factor", of("k")),
        *((f"interval of {found.level:.15g}", end) for end in of("interval")),
    ]
    keys = ("name", "value", "u", "dof", "sensitivity", "contribution", "share")
    entries = [tuple(str(getattr(each, key)) for key in keys) for each in of("budget")]
    return [Table((), [(name, str(number)) for name, number in rows]), Table(("input", *keys[1:]), entries)]


def _budget(entries: Sequence[Any]) -> Table:
    """A table of the budget; of many entries those that contribute most."""
    shown = entries
    if len(entries) > _MOST_ROWS:
        largest = sorted(range(len(entries)), key=lambda i: -abs(entries[i].contribution))[:_MOST_ROWS]
        shown = [entries[i] for i in sorted(largest)]
    rows = [
        (
            each.name,
            stated_text(each.value, each.u),
            _freedom(each.dof),
            _brief(each.sensitivity),
            _brief(each.contribution),
            f"{100 * each.share:.1f} %",
        )
        for each in shown
    ]
    if len(shown) < len(entries):
        rest = 100 * (1 - sum(each.share for each in shown))
        rows.append((f"{len(entries) - len(shown):,} others", "", "", "", "", f"{rest:.1f} %"))
    return Table(("input", "value", "dof", "sensitivity", "contribution", "share"), rows)


def _freedom(dof: float) -> str:
    return "inf" if math.isinf(dof) else f"{dof:.4g}"


def _effective(dof: float) -> str:
    """The degrees of freedom for the coverage factor, truncated to an integer, with the original value."""
    if math.isinf(dof) or math.isnan(dof) or whole_dof(dof) == dof:
        return _freedom(dof)
    place = max(0, 3 - math.floor(math.log10(dof)))
    cut = math.floor(dof * 10**place) / 10**place
    return f"{whole_dof(dof):.15g}  ({cut:.15g} cut to a whole number)"


def _effective_in_digits(dof: str) -> str:
    """As `_effective`, for degrees of freedom with proved digits."""
    number = float(dof)
    if math.isinf(number) or math.isnan(number) or whole_dof(number) == number:
        return dof
    return f"{whole_dof(number):.15g}  ({dof} cut to a whole number)"


def _spread(sampled: Any, level: float) -> float:
    """The standard deviation that determines the rounding of samples: their own, or that of a normal distribution with
    the same interval where a few outliers make theirs far larger."""
    low, high = sampled.interval
    of_interval = (high - low) / 2 / coverage_factor(level, math.inf)
    return float(of_interval if sampled.u > _FAR_DRAWS * of_interval > 0 else sampled.u)


def _brief(number: Any) -> str:
    return number if isinstance(number, str) else f"{number:.4g}"


def _to_place(number: float, u: float, digits: int) -> str:
    """A number rounded to the decimal place to which a value with uncertainty `u` is stated."""
    shown, _, rest = stated_text(number, u, digits).partition(" ± ")
    # A value with a power of 10 is in parentheses, with the power after them.
    return shown[1:] + rest.partition(")")[2] if shown.startswith("(") else shown
