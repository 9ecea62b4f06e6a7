"""Parameters that have a value for each level of a column, as `V[run]` in a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.models.data import Data
from gradcli.models.fitting.problem.fit_problems import Parameters
from gradcli.named_tuples import NamedTuple

# The most levels of a factor for which dense matrices are affordable.
_MOST_LEVELS = 2_000
_WHOLE_NUMBER = re.compile(r"[-+]?\d+\.0")


def indexed_parameters(program: tree.Module, columns: Collection[str]) -> dict[str, tuple[str, list[tree.Index]]]:
    """The parameters of a program that are indexed by columns, as `V[run]`: by name the column, and where they stand.

    Raises UsageError for a parameter with several columns, or with one here and none there, and for one that is indexed
    by another parameter.
    """
    found: dict[str, tuple[str, list[tree.Index]]] = {}
    free = {name for name, read in scope.free_names(program).items() if not read.maybe_assigned}
    inside: set[tuple[int, int]] = set()
    for node in tree.all_nodes(program):
        if not (isinstance(node, tree.Index) and isinstance(node.value, tree.Name) and len(node.items) == 1):
            continue
        name, item = node.value.id, node.items[0]
        if name not in free or name in columns or not isinstance(item, tree.Name) or item.id not in free:
            continue
        if item.id not in columns:
            raise UsageError(
                f"'{item.id}', by which '{name}' has values, is no column of the data",
                hint=did_you_mean(item.id, columns, f"they have {', '.join(columns)}"),
                span=item.span,
                source=program.source,
            )
        column, places = found.setdefault(name, (item.id, []))
        if column != item.id:
            raise UsageError(
                f"'{name}' has values by '{column}', and by '{item.id}'",
                hint="each has a parameter of its own name",
                span=node.span,
                source=program.source,
            )
        places.append(node)
        inside.add((node.value.span.start, node.value.span.end))
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Name) and node.id in found and (node.span.start, node.span.end) not in inside:
            raise UsageError(
                f"'{node.id}' has a value for each '{found[node.id][0]}', and stands here without",
                hint=f"write {node.id}[{found[node.id][0]}], or call one of them otherwise",
                span=node.span,
                source=program.source,
            )
    return found


def without_indices(source: str, places: Sequence[tree.Index]) -> str:
    """The text with blanks instead of the indices, so that spans stay right."""
    for node in places:
        # The span of an index in brackets ends behind these.
        begin, end = node.value.span.end, source.index("]", node.items[0].span.end) + 1
        source = source[:begin] + " " * (end - begin) + source[end:]
    return source


class Factor(NamedTuple):
    """The levels of a column, as texts, and the level `codes` `[n]` of the rows, -1 for an unknown level."""

    column: str
    levels: Sequence[str]
    codes: Any


def factors_of(indexed: Mapping[str, str], data: Data) -> dict[str, Factor]:
    """The factors by the names of their parameters, with the levels in the order in which they appear in the `data`.

    Raises UsageError for too many levels.
    """
    found = {}
    for name, column in indexed.items():
        texts = data.texts[column]
        order = [key for key, rows in texts.grouped().items() if key is not None and len(rows)]
        place: dict[str | None, int] = {level: i for i, level in enumerate(order)}
        codes: Any = np.array([place.get(level, -1) for level in texts.names], "int64")[texts.codes]
        if len(order) > _MOST_LEVELS:
            raise UsageError(
                f"'{column}' has {len(order):,} levels, and a parameter of levels has at most {_MOST_LEVELS:,}",
                hint="--by fits groups apart",
            )
        found[name] = Factor(column, level_texts(order), codes)
    return found


def level_texts(levels: Sequence[str | None]) -> list[str]:
    """The texts of levels: whole numbers without a fraction, where all levels are such."""
    texts = [*map(str, levels)]
    return [text[:-2] for text in texts] if all(map(_WHOLE_NUMBER.fullmatch, texts)) else texts


def labels_of(names: Sequence[str], factors: Mapping[str, Factor]) -> list[str]:
    """The names of all values of the parameters `names`: `V[a]`, `V[b]` and `K`."""
    return [
        label
        for name in names
        for label in ([f"{name}[{level}]" for level in factors[name].levels] if name in factors else [name])
    ]


def base_of(label: str) -> str:
    """The parameter of a label: `V` of `V[a]`, and of `V` itself."""
    return label.partition("[")[0]


def parted(given: Parameters, indexed: Collection[str]) -> tuple[Parameters, Parameters]:
    """The settings of parameters as a whole, and those of single levels, as `V[a]`."""

    def is_level(name: str) -> bool:
        return base_of(name) != name and base_of(name) in indexed

    def of(keep: bool) -> Parameters:
        return Parameters(
            {name: value for name, value in given.start.items() if is_level(name) is keep},
            [name for name in given.fixed if is_level(name) is keep],
            {name: pair for name, pair in given.bounds.items() if is_level(name) is keep},
            {name: pair for name, pair in given.priors.items() if is_level(name) is keep},
        )

    return of(False), of(True)


def by_level(whole: Parameters, levels: Parameters, names: Sequence[str], factors: Mapping[str, Factor]) -> Parameters:
    """The settings of all values of the parameters `names`, by label: those of single levels, else those of the whole.

    Raises BindingError for a level that the data do not have, and for a fixed one without a value.
    """
    labels = labels_of(names, factors)
    for said in (levels.start, levels.fixed, levels.bounds, levels.priors):
        for label in said:
            if label not in labels:
                name = base_of(label)
                known = labels_of([name], factors)
                listed = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
                raise BindingError(
                    f"there is no '{label}'", hint=did_you_mean(label, known, f"the values of {name} are {listed}")
                )

    def expanded(of_whole: Mapping[str, Any], of_levels: Mapping[str, Any]) -> dict[str, Any]:
        found = {
            label: value for name, value in of_whole.items() for label in labels_of([name], factors) if label in labels
        }
        return found | dict(of_levels)

    start = expanded(whole.start, levels.start)
    fixed = [*dict.fromkeys([label for name in whole.fixed for label in labels_of([name], factors)] + [*levels.fixed])]
    for label in fixed:
        if label not in start:
            raise BindingError(f"'{label}' is to be fixed, and has no value", hint=f"give it one: '{label}=1'")
    return Parameters(start, fixed, expanded(whole.bounds, levels.bounds), expanded(whole.priors, levels.priors))
