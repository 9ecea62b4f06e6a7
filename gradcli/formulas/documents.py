"""The derivatives of a program, each written in a language, as one document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gradcli import limits
from gradcli.formulas.joined_programs import together
from gradcli.formulas.naming import Names, Naming, names_of
from gradcli.primitives.arithmetic import multiply
from gradcli.primitives.powers import whole_power
from gradcli.program.ir import Program

# A part of a formula that stands in it twice is named where it has more characters.
SHORT = 40


class Formulas(NamedTuple):
    """The text of a program; its value, as it stands, and its simplified derivatives by the names that
    they are taken by, joined with commas. Each is a program with one output. `squares` says whether the program has sums
    of squares itself that overflow, as sqrt(x**2 + y**2) does and hypot(x, y) does not."""

    source: str
    value: Program
    derivatives: Mapping[str, Program]
    squares: bool = False


class Document(NamedTuple):
    """What a language makes of derivatives: the text, and the same as members of a JSON object."""

    text: str
    members: dict[str, Any]


class Code(NamedTuple):
    """Lines that stand once at the beginning of a file, and a function."""

    head: Sequence[str]
    function: str

    @property
    def whole(self) -> str:
        """The function with what it needs."""
        return file_of([self])


def file_of(parts: Sequence[Code]) -> str:
    """Several functions in a file."""
    head = "\n".join(dict.fromkeys(line for part in parts for line in part.head))
    return "\n\n\n".join([*([head] if head else []), *(part.function for part in parts)])


class WriteFunction(Protocol):
    """Writes a program as a function with a name and a line that says what it is: it returns the one output there is, or
    gives all of them."""

    def __call__(self, program: Program, names: Names, *, name: str, doc: str, short: int) -> Code: ...


def separate_formulas(formulas: Formulas, write: Callable[[Program], str]) -> Document:
    """Each derivative as a formula, which stands behind what it is by, unless that is the one name there is."""
    texts = {key: write(program) for key, program in formulas.derivatives.items()}
    if len(texts) == 1 and not any("[" in key for key in texts):
        text = next(iter(texts.values()))
    else:
        text = "\n".join(f"{key}: {text}" if "\n" not in text else f"{key}:\n{text}" for key, text in texts.items())
    return Document(text, {"derivatives": texts})


def functions(formulas: Formulas, write: WriteFunction, naming: Naming) -> Document:
    """A file with the function `value`, one for each derivative, called `derivative` and the names that it is by, and
    `value_and_derivatives`, in which what several of them compute is computed once."""
    names = names_of(formulas.value, naming)
    # Every function has all names.
    limits.charge_steps(len(formulas.derivatives) * len(names.inputs))
    of = " ".join(formulas.source.split())
    by = {key: f"by {re.sub(', *', ', ', key)}" for key in formulas.derivatives}

    def written(name: str, program: Program, doc: str, short: int = SHORT) -> Code:
        return write(program, names.inside(), name=names.new(name), doc=one_line(doc), short=short)

    program = _with_squares(formulas.value)
    value = written("value", program, f"The value of {of}.")
    derivatives = {
        key: written(identifier("derivative", key), program, f"The derivative of {of} {by[key]}.")
        for key, program in formulas.derivatives.items()
    }
    all_of_them = together([program, *formulas.derivatives.values()])
    doc = f"The value of {of}, and its derivatives {'; '.join(by.values())}."
    joined = written("value_and_derivatives", all_of_them, doc, short=0)
    members = {
        "value": value.whole,
        "derivatives": {key: code.whole for key, code in derivatives.items()},
        "together": joined.whole,
    }
    return Document(file_of([value, *derivatives.values(), joined]), members)


def _with_squares(program: Program) -> Program:
    """Numbers that are multiplied with themselves as their squares, which formulas share with it."""
    equations = [
        e._replace(primitive=whole_power, inputs=e.inputs[:1], params={"n": 2.0})
        if e.primitive is multiply and e.inputs[0] is e.inputs[1]
        else e
        for e in program.equations
    ]
    return program._replace(equations=tuple(equations))


def one_line(text: str) -> str:
    """A text without characters that turn it around, or that nobody sees."""
    return "".join(character if character.isprintable() else " " for character in text)


def identifier(stem: str, key: str) -> str:
    """The name of the derivative by the names in `key`."""
    return f"{stem}_{re.sub(r'[][, ]+', '_', key).strip('_')}"
