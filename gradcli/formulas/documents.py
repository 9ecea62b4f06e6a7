"""The derivatives of a program, each written in a language, as one document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from gradcli import limits
from gradcli.formulas.naming import Names, Naming, names_of
from gradcli.program.ir import Program

# A part of a formula that stands in it twice is named where it has more characters.
SHORT = 40


class Formulas(NamedTuple):
    """The text of a program; its value, as it stands, and its simplified derivatives by the names that
    they are taken by, joined with commas. Each is a program with one output."""

    source: str
    value: Program
    derivatives: Mapping[str, Program]


class Document(NamedTuple):
    """What a language makes of derivatives: the text, and the same as members of a JSON object."""

    text: str
    members: dict[str, Any]


class WriteFunction(Protocol):
    """Writes a program with one output as a function with a name and a line that says what it is."""

    def __call__(self, program: Program, names: Names, *, name: str, doc: str, short: int) -> str: ...


def separate_formulas(formulas: Formulas, write: Callable[[Program], str]) -> Document:
    """Each derivative as a formula, which stands behind what it is by, unless that is the one name there is."""
    texts = {key: write(program) for key, program in formulas.derivatives.items()}
    if len(texts) == 1 and not any("[" in key for key in texts):
        text = next(iter(texts.values()))
    else:
        text = "\n".join(f"{key}: {text}" if "\n" not in text else f"{key}:\n{text}" for key, text in texts.items())
    return Document(text, {"derivatives": texts})


def separate_functions(formulas: Formulas, write: WriteFunction, naming: Naming) -> Document:
    """Each derivative as a function that is called `derivative` and the names that it is by."""
    of = f"The derivative of {' '.join(formulas.source.split())}"
    names = names_of(formulas.value, naming)
    # Every function has all names.
    limits.charge_steps(len(formulas.derivatives) * len(names.inputs))
    called = {key: names.new(identifier("derivative", key)) for key in formulas.derivatives}
    texts = {
        key: write(
            program, names.inside(), name=called[key], doc=one_line(f"{of} by {re.sub(', *', ', ', key)}."), short=SHORT
        )
        for key, program in formulas.derivatives.items()
    }
    return Document("\n\n\n".join(texts.values()), {"derivatives": texts})


def one_line(text: str) -> str:
    """A text without characters that turn it around, or that nobody sees."""
    return "".join(character if character.isprintable() else " " for character in text)


def identifier(stem: str, key: str) -> str:
    """The name of the derivative by the names in `key`."""
    return f"{stem}_{re.sub(r'[][, ]+', '_', key).strip('_')}"
