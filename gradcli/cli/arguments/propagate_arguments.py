"""Reads inputs with uncertainties from the words and options of `gradcli propagate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.cli.arguments import inputs
from gradcli.cli.process.environment import Environment
from gradcli.errors import UsageError
from gradcli.evaluation.nested_lists import items
from gradcli.io import variables
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.input_quantities import input_of_text, quantity_of_observations
from gradcli.named_tuples import NamedTuple

# A suffix of a file name that means all of its columns.
_ALL = ":all"


class UncertainWords(NamedTuple):
    """A program, its inputs as `propagate` accepts them, their correlations and degrees of freedom."""

    program: Module
    values: dict[str, Any]
    correlation: dict[str | tuple[str, str], float]
    dof: dict[str, float]


def read_words(options: Any, environment: Environment) -> UncertainWords:
    """Read the words and options of a command line; `options` has those of `inputs.BindingOptions`, `correlation`,
    `dof`, `digits` and `quiet`.

    Raises what `inputs.sources` raises, and UsageError for an invalid correlation or degrees of freedom.
    """
    words = [word.removesuffix(_ALL) if _of_file(word) else word for word in options.words or ()]
    # With --digits, values stay text and are parsed again at each precision.
    reading = _value if options.digits is None else _text
    sources = inputs.sources(options.replaced(words=words), environment, "float64", reading)
    of_files = [variables.split_binding(word).name for word in words if _of_file(word)]
    values = {name: value() for name, value in sources.values.items()}
    if of_files and options.digits is not None:
        raise UsageError(
            f"the mean of the observations of '{of_files[0]}' has no proved digits", hint="leave out --digits"
        )
    for name in of_files:
        values[name], left_out = quantity_of_observations(values[name], name)
        if left_out and not options.quiet:
            environment.write_error(f"warning: {left_out:,} rows of '{name}' lack a number and are left out")
    correlation: dict[str | tuple[str, str], float] = {}
    for text in options.correlation or ():
        for names, number in _said(text, "--correlation a,b=0.3"):
            _put(correlation, _two(names, text), _number(number, text), text)
    dof: dict[str, float] = {}
    for text in options.dof or ():
        for names, number in _said(text, "--dof x=9"):
            _put(dof, _one(names, text), _number(number, text), text)
    return UncertainWords(sources.program, values, correlation, dof)


def _of_file(word: str) -> bool:
    return inputs.is_binding(word) and word.partition("=")[2].lstrip().startswith("@")


def _value(text: str, _dtype: str, whole: str, offset: int) -> Any:
    return input_of_text(text, offset, whole)


def _text(text: str, _dtype: str, _whole: str, _offset: int) -> str:
    return text


def _said(text: str, like: str) -> list[tuple[list[str], str]]:
    """The names and numbers of `a,b=0.3,b,c=0.1`."""
    found: list[tuple[list[str], str]] = []
    names: list[str] = []
    for _, part in items(text):
        name, equals, number = part.partition("=")
        names.append(name.strip())
        if equals:
            found.append((names, number.strip()))
            names = []
    if names or not found:
        raise UsageError(f"{text!r} says no number", hint=f"write {like}")
    return found


def _put(said: dict[Any, float], key: Any, number: float, text: str) -> None:
    if key in said:
        raise UsageError(f"{text!r} says again what was said already", hint="leave out one of them")
    said[key] = number


def _two(names: Sequence[str], text: str) -> tuple[str, str]:
    if len(names) != 2:
        raise UsageError(f"{text!r} is no correlation of two inputs", hint="write --correlation a,b=0.3")
    return names[0], names[1]


def _one(names: Sequence[str], text: str) -> str:
    if len(names) != 1:
        raise UsageError(f"{text!r} is no number for one input", hint="write --dof x=9")
    return names[0]


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise UsageError(f"{text!r} in {whole!r} is no number", hint="write --correlation a,b=0.3, or --dof x=9")
    return number
