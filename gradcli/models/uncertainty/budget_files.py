"""The uncertainty budget as a file: a table of data, with all digits, or one of LaTeX, rounded as on the screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradcli.io.output import Save, write_atomically
from gradcli.models.uncertainty.significant_digits import stated_text

_LATEX = ".tex"
_KEYS = ("value", "u", "dof", "sensitivity", "contribution", "share")
# Characters with a meaning in LaTeX.
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_SPELT = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def check_budget_path(path: str | None) -> None:
    """Raise UsageError for a path whose ending names no format."""
    if path is not None and not path.lower().endswith(_LATEX):
        # Imported here because most propagations write no file.
        from gradcli.rows import outputs

        outputs.check_path(path, f", or in {_LATEX}")


def save_budget(found: Any, path: str, save: Save = write_atomically) -> None:
    """Write the budget of a propagation, with the result as its last row, in the format of the ending of the path."""
    if path.lower().endswith(_LATEX):
        text = "\n".join(_latex(found)) + "\n"
        save(path, lambda stream: stream.write(text.encode()))
        return
    from gradcli.rows import new_tables

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
            cells = [_stated(each.value, each.u), *map(_brief, (each.dof, each.sensitivity, each.contribution)), share]
            lines.append(" & ".join([_escaped(each.name), *cells]) + r" \\")
        lines += [r"\hline", f"{_escaped(result)} & {_stated(value, u)} & {_brief(dof)} & & & \\\\", r"\hline"]
    return [*lines, r"\end{tabular}"]


def _escaped(name: str) -> str:
    return _SPECIAL.sub(lambda found: _SPELT.get(found[0], "\\" + found[0]), name)


def _stated(value: Any, u: Any) -> str:
    return _in_mathematics(stated_text(float(value), float(u)))


def _brief(number: Any) -> str:
    return _in_mathematics(f"{float(number):.4g}")


def _in_mathematics(text: str) -> str:
    """A number, or a value with its uncertainty, in LaTeX."""
    text = re.sub(r"e([+-]\d+)", lambda found: rf" \times 10^{{{int(found[1])}}}", text)
    return "$" + text.replace("±", r"\pm").replace("inf", r"\infty").replace("nan", r"\text{nan}") + "$"
