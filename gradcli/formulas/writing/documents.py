"""Assembles a program's value and derivatives, each written in one language, into one document."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from gradcli import limits
from gradcli.formulas.writing.naming import Names, Naming, names_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.powers import whole_power
from gradcli.program.builder import equation_key
from gradcli.program.ir import Atom, Equation, Program, Variable

# A repeated part of a formula gets a name if it has more characters than this.
SHORT = 40
# Cost of one equation, in eighths of a step.
_EQUATION = 8


class Formulas(NamedTuple):
    """The source text of an expression, its value as it stands, and its simplified derivatives by the comma-separated
    names that they are taken by; each is a program with one output. `squares` says whether the value itself contains
    sums of squares that can overflow, as sqrt(x**2 + y**2) does and hypot(x, y) does not. `complex_names` are the names of
    complex numbers, None where all numbers are real."""

    source: str
    value: Program
    derivatives: Mapping[str, Program]
    squares: bool = False
    complex_names: frozenset[str] | None = None


class Document(NamedTuple):
    """Derivatives written in a language: the text, and the same as members of a JSON object."""

    text: str
    members: dict[str, Any]


class Code(NamedTuple):
    """One function, with what a file must have before it (import or include lines, definitions) and after it."""

    head: Sequence[str]
    function: str
    tail: Sequence[str] = ()

    @property
    def whole(self) -> str:
        """The function with the definitions that it needs."""
        return file_of([self])


def file_of(parts: Sequence[Code]) -> str:
    """The text of a file with several functions, whose other parts are not repeated."""
    head = "\n".join(dict.fromkeys(line for part in parts for line in part.head))
    tail = dict.fromkeys(definition for part in parts for definition in part.tail)
    return "\n\n\n".join([*([head] if head else []), *(part.function for part in parts), *tail])


class WriteFunction(Protocol):
    """Writes a program as a function with a name and a one-line description; the function returns a single output, or
    fills or returns several."""

    def __call__(self, program: Program, names: Names, *, name: str, doc: str, short: int) -> Code: ...


def separate_formulas(formulas: Formulas, write: Callable[[Program], str]) -> Document:
    """Each derivative as a formula, prefixed by the names that it is taken by unless there is only one name."""
    texts = {key: write(program) for key, program in formulas.derivatives.items()}
    if len(texts) == 1 and not any("[" in key for key in texts):
        text = next(iter(texts.values()))
    else:
        text = "\n".join(f"{key}: {text}" if "\n" not in text else f"{key}:\n{text}" for key, text in texts.items())
    return Document(text, {"derivatives": texts})


def functions(formulas: Formulas, write: WriteFunction, naming: Naming) -> Document:
    """A file with the function `value`, a function `derivative_<names>` for each derivative, and
    `value_and_derivatives`, which computes common subexpressions once."""
    names = names_of(formulas.value, naming)
    # Every function has all names as parameters.
    limits.charge_steps(len(formulas.derivatives) * len(names.inputs))
    of = " ".join(formulas.source.split())
    by = {key: f"by {re.sub(', *', ', ', key)}" for key in formulas.derivatives}

    def written(name: str, program: Program, doc: str, short: int = SHORT) -> Code:
        return write(program, names.local_scope(), name=names.new(name), doc=one_line(doc), short=short)

    program = with_squares(formulas.value)
    value = written("value", program, f"The value of {of}.")
    derivatives = {
        key: written(identifier("derivative", key), program, f"The derivative of {of} {by[key]}.")
        for key, program in formulas.derivatives.items()
    }
    all_of_them = merge_programs([program, *formulas.derivatives.values()])
    doc = f"The value of {of}, and its derivatives {'; '.join(by.values())}."
    joined = written("value_and_derivatives", all_of_them, doc, short=0)
    members = {
        "value": value.whole,
        "derivatives": {key: code.whole for key, code in derivatives.items()},
        "together": joined.whole,
    }
    return Document(file_of([value, *derivatives.values(), joined]), members)


def with_squares(program: Program) -> Program:
    """A program with x*x as x**2, so that it shares the squares that simplified formulas contain."""
    equations = [
        e._replace(primitive=whole_power, inputs=e.inputs[:1], params={"n": 2.0})
        if e.primitive is multiply and e.inputs[0] is e.inputs[1]
        else e
        for e in program.equations
    ]
    return program._replace(equations=tuple(equations))


def one_line(text: str) -> str:
    """A text with every unprintable character (line breaks, direction marks) replaced by a space."""
    return "".join(character if character.isprintable() else " " for character in text)


def identifier(stem: str, key: str) -> str:
    """`stem` joined with the names in `key` to an identifier."""
    return f"{stem}_{re.sub(r'[][(), ]+', '_', key).strip('_')}"


def merge_programs(programs: Sequence[Program]) -> Program:
    """One program with the outputs of all programs and the inputs of the first; the others may have fewer inputs."""
    inputs = {variable.name: variable for variable in programs[0].inputs}
    equations: dict[Hashable, Equation] = {}
    outputs: list[Atom] = []
    for program in programs:
        limits.charge_steps(_EQUATION * len(program.equations))
        placed: dict[Variable, Variable] = {variable: inputs[variable.name] for variable in program.inputs}
        for equation in program.equations:
            operands = tuple(placed[a] if isinstance(a, Variable) else a for a in equation.inputs)
            key = equation_key(equation.primitive, operands, equation.params)
            found = equations.setdefault(key, equation._replace(inputs=operands))
            placed[equation.output] = found.output
        outputs += [placed[a] if isinstance(a, Variable) else a for a in program.outputs]
    return programs[0]._replace(equations=tuple(equations.values()), outputs=tuple(outputs), guards=())
