"""The presentation of a propagated uncertainty: its stated digits, the printed tables, and the budget as a file of data
or of LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

from gradcli.io.output import Save, write_atomically
from gradcli.io.text_tables import Table
from gradcli.models.results import as_json
from gradcli.models.uncertainty.input_quantities import coverage_factor, whole_dof

# If the standard deviation of samples exceeds that of their interval by this factor, it is due to a few outliers.
_FAR_DRAWS = 3.0
# The maximum number of rows of a budget in a table; the largest contributions are shown.
_MOST_ROWS = 50
# Stated digits of an uncertainty.
_STATED_DIGITS = 2
# Enough digits from the first of the largest float to the last of the smallest.
_EVERY = Context(prec=700)
# Powers of ten that are written without an exponent.
_PLAIN = range(-5, 10)
_LATEX = ".tex"
_KEYS = ("value", "u", "dof", "sensitivity", "contribution", "share")
# Characters with a meaning in LaTeX.
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_SPELT = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


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
        digits = sampled.digits or _STATED_DIGITS
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
        rows.append((name, f"[{', '.join(_to_place(end, half, _STATED_DIGITS) for end in ends)}]"))
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
    """Like `_effective`, for degrees of freedom with proved digits."""
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


def _last_place(u: float, digits: int = _STATED_DIGITS) -> int:
    """The power of ten of the last of the stated digits of an uncertainty, which must be positive."""
    return Decimal(f"{u:.{digits - 1}e}").adjusted() - digits + 1


def tolerance(u: float, digits: int = _STATED_DIGITS) -> float:
    """Half a unit of the last stated digit of an uncertainty: smaller differences do not matter (JCGM 101, 7.9.2). 0
    where the uncertainty is not finite and positive."""
    return 0.5 * 10.0 ** _last_place(u, digits) if math.isfinite(u) and u > 0 else 0.0


def stated_text(value: float, u: float, digits: int = _STATED_DIGITS) -> str:
    """Value and uncertainty as text: `8.95 ± 0.22`, `(1.2345 ± 0.0067)e-09`."""
    if not (math.isfinite(value) and math.isfinite(u) and u > 0):
        return f"{value} ± {'0' if u == 0 else u}"
    place = _last_place(u, digits)
    exponent = max(Decimal(repr(float(value))).adjusted() if value else place, place + digits - 1)
    shift = 0 if exponent in _PLAIN and place <= _STATED_DIGITS else exponent
    texts = [f"{_rounded(number, place).scaleb(-shift, _EVERY):f}" for number in (value, u)]
    return " ± ".join(texts) if not shift else f"({' ± '.join(texts)})e{shift:+03d}"


def _rounded(number: float, place: int) -> Decimal:
    # Negative zero becomes 0.
    return Decimal(repr(float(number))).quantize(Decimal(1).scaleb(place), context=_EVERY) or Decimal(0).scaleb(place)


def check_budget_path(path: str | None) -> None:
    """Raise UsageError for a path whose ending names no format."""
    if path is not None and not path.lower().endswith(_LATEX):
        # Imported here because most propagations write no file.
        from gradcli.rows.formats import outputs

        outputs.check_path(path, f", or in {_LATEX}")


def save_budget(found: Any, path: str, save: Save = write_atomically) -> None:
    """Write the budget of a propagation, with the result as its last row, in the format of the ending of the path."""
    if path.lower().endswith(_LATEX):
        text = "\n".join(_latex(found)) + "\n"
        save(path, lambda stream: stream.write(text.encode()))
        return
    from gradcli.rows.formats import new_tables

    new_tables.save(_columns(found), path, save)


def _results(found: Any) -> Sequence[tuple[str, Any, Any, Any, Any]]:
    """The name, value, uncertainty, degrees of freedom and budget of each result."""
    if not isinstance(found.value, dict):
        return [("value", found.value, found.u, found.dof, found.budget)]
    return [(str(name), found.value[name], found.u[name], found.dof[name], found.budget[name]) for name in found.value]


def _columns(found: Any) -> dict[str, Any]:
    """The columns of the table; with several results the first one says whose row it is."""
    several = isinstance(found.value, dict)
    columns: dict[str, list[Any]] = {name: [] for name in (("result",) if several else ()) + ("name", *_KEYS)}
    for result, value, u, dof, budget in _results(found):
        rows = [(each.name, *(getattr(each, key) for key in _KEYS)) for each in budget]
        for row in [*rows, (result, value, u, dof, None, None, None)]:
            for column, cell in zip(columns.values(), (result, *row) if several else row):
                column.append(cell)
    return columns


def _latex(found: Any) -> list[str]:
    """The lines of a tabular environment."""
    lines = [
        r"\begin{tabular}{lrrrrr}",
        r"\hline",
        r"input & value & dof & sensitivity & contribution & share \\",
        r"\hline",
    ]
    for result, value, u, dof, budget in _results(found):
        for each in budget:
            share = f"{100 * float(each.share):.1f}\\,\\%"
            cells = [_stated(each.value, each.u), *map(_number, (each.dof, each.sensitivity, each.contribution)), share]
            lines.append(" & ".join([_escaped(each.name), *cells]) + r" \\")
        lines += [r"\hline", f"{_escaped(result)} & {_stated(value, u)} & {_number(dof)} & & & \\\\", r"\hline"]
    return [*lines, r"\end{tabular}"]


def _escaped(name: str) -> str:
    return _SPECIAL.sub(lambda found: _SPELT.get(found[0], "\\" + found[0]), name)


def _stated(value: Any, u: Any) -> str:
    return _in_mathematics(stated_text(float(value), float(u)))


def _number(number: Any) -> str:
    return _in_mathematics(f"{float(number):.4g}")


def _in_mathematics(text: str) -> str:
    """A number, or a value with its uncertainty, in LaTeX."""
    text = re.sub(r"e([+-]\d+)", lambda found: rf" \times 10^{{{int(found[1])}}}", text)
    return "$" + text.replace("±", r"\pm").replace("inf", r"\infty").replace("nan", r"\text{nan}") + "$"
