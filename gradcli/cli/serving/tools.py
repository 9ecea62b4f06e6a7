"""The commands as tools: the JSON schema of their arguments, and the command line of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from gradcli.cli.command import command_named
from gradcli.cli.main import COMMANDS
from gradcli.cli.options import fields
from gradcli.errors import UsageError, did_you_mean
from gradcli.named_tuples import NamedTuple

# The options that a request may give, by command: none reads or writes a file, opens a connection or lifts a limit.
_OPTIONS = {
    "eval": "wrt const order jacobian grad_output no_grad no_rewrite digits enclose certify sparse nodes retain dtype "
    "wirtinger",
    "diff": "wrt order to dialect simplify digits",
    "plot": "order log nyquist",
    "solve": "unknowns all prove wrt const order seed digits",
    "ode": "points wrt order show stop method digits",
    "fit": "response fix bounds prior sigma absolute_sigma loss loss_scale family trials offset weights errors "
    "x_sigma random reml derive against bootstrap jackknife cross_validate level profile starts seed",
    "minimize": "wrt const method max bounds subject_to global_ starts seed sensitivity steps lr momentum batch epochs "
    "schedule prove integer",
    "sample": "wrt const bounds chains draws warmup target seed",
    "design": "rows criterion derive fix sigma family",
    "propagate": "correlation dof level samples seed shortest adaptive sobol morris limits digits",
    "series": "wrt const order to over digits",
    "check": "wrt const order tolerance certify",
    "graph": "wrt const expand grad_output no_grad no_rewrite",
    "explain": "wrt const order symbolic expand",
    "ops": "",
}
# Arguments before the program of commands that would otherwise take the name of a file for a program.
BLANK = dict.fromkeys(_OPTIONS, "") | dict.fromkeys(("ode", "fit", "minimize", "sample", "solve"), " ")
NAMES = tuple(name for name in COMMANDS if name in _OPTIONS)
_NAME = re.compile(r"[^\W\d]\w*")
# A velocity at the start has a prime, as in x'.
_NAME_OR_VELOCITY = re.compile(r"[^\W\d]\w*['’′]*")
_PROGRAM = {"type": "string", "description": "The program, as in log(x**q)."}
_VALUES = {
    "type": "object",
    "description": "Numbers, nested lists of numbers, or expressions as texts, by name: {\"x\": 5, \"w\": [1, 2]}. For plot, and "
    "the inputs of design, a range, \"0..10\"; for propagate \"5.0±0.1\"; for fit the columns as lists, and the starts of "
    "parameters; for ode the times, \"0..20\" or a list, and the starts of states and velocities, {\"x\": 1, \"x'\": 0}.",
    "additionalProperties": {"type": ["number", "boolean", "string", "array"]},
}  # fmt: skip
_START = {
    "type": "object",
    "description": "Where the search for each unknown begins.",
    "additionalProperties": {"type": "number"},
}
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


class _Option(NamedTuple):
    flag: str
    kind: str
    help: str

    def schema(self) -> dict[str, Any]:
        if self.kind != "array":
            return {"type": self.kind, "description": self.help}
        return {"type": "array", "items": {"type": "string"}, "description": self.help}

    def words(self, name: str, value: Any) -> Iterator[str]:
        """The words of a command line for a value. Raises UsageError for one of another type."""
        if self.kind == "boolean":
            if not isinstance(value, bool):
                raise _wrong(name, "true or false")
            if value:
                yield self.flag
            return
        values = value if self.kind == "array" and isinstance(value, list) else [value]
        for each in values:
            if self.kind in ("integer", "number"):
                if isinstance(each, bool) or not isinstance(each, int if self.kind == "integer" else (int, float)):
                    raise _wrong(name, "a whole number" if self.kind == "integer" else "a number")
            elif not isinstance(each, str):
                raise _wrong(name, "a list of texts" if self.kind == "array" else "a text")
            yield f"{self.flag}={each}"


def _wrong(name: str, what: str) -> UsageError:
    return UsageError(f"'{name}' is {what}")


@cache
def _options(command: str) -> Mapping[str, _Option]:
    """The options of a tool, by the names of its arguments."""
    options: type = command_named(command).options
    declared = {field.name: field for field in fields(options)}
    found = {}
    for name in _OPTIONS[command].split():
        field = declared[name]
        found[name.rstrip("_")] = _Option(field.declared.name, _TYPES[field.kind], field.declared.help)
    return found


def description(command: str) -> str:
    return COMMANDS[command]


def schema(command: str) -> dict[str, Any]:
    """The JSON schema of the arguments of a tool."""
    if command == "ops":
        asked = {"type": "string", "description": "The function to tell about; all of them without it."}
        return {"type": "object", "properties": {"name": asked}, "additionalProperties": False}
    properties: dict[str, Any] = {"program": _PROGRAM, "values": _VALUES}
    if command == "solve":
        properties["start"] = _START
    properties |= {name: option.schema() for name, option in _options(command).items()}
    return {"type": "object", "properties": properties, "required": ["program"], "additionalProperties": False}


def command_line(command: Any, arguments: Any, limits: Sequence[str]) -> list[str]:
    """The command line of a request, with the options `limits`.

    Raises UsageError for what the tool does not take. No text of a request becomes an option, a path or standard input:
    they follow `--`, and a value never begins with @."""
    if command not in NAMES:
        hint = did_you_mean(str(command), NAMES, f"there are {', '.join(NAMES)}")
        raise UsageError(f"there is no tool {command!r}", hint=hint)
    if not isinstance(arguments, Mapping):
        raise UsageError("the arguments of a tool are an object")
    known = schema(command)["properties"]
    for name in arguments:
        if name not in known:
            raise UsageError(
                f"{command} takes no {name!r}", hint=did_you_mean(name, known, f"it takes {', '.join(known)}")
            )
    if command == "ops":
        name = arguments.get("name")
        if name is not None and not isinstance(name, str):
            raise _wrong("name", "a text")
        return ["ops", "--json", *([] if name is None else ["--", name])]
    program = arguments.get("program")
    if not isinstance(program, str):
        raise UsageError(
            "'program' is the text of a program", hint='{"program": "log(x**q)", "values": {"x": 5, "q": 3}}'
        )
    options = _options(command)
    given = [w for name, value in arguments.items() if name in options for w in options[name].words(name, value)]
    words = [
        f"{BLANK[command]}{program}",
        *_bindings(arguments.get("values"), "=", _NAME_OR_VELOCITY if command == "ode" else _NAME),
        *_bindings(arguments.get("start"), "~", _NAME),
    ]
    return [command, "--json", *given, *limits, "--", *words]


def _bindings(values: Any, sign: str, names: re.Pattern[str]) -> Iterator[str]:
    if values is None:
        return
    if not isinstance(values, Mapping):
        raise _wrong("values" if sign == "=" else "start", "an object of names and their values")
    for name, value in values.items():
        if not isinstance(name, str) or not names.fullmatch(name):
            raise UsageError(f"{name!r} is no name")
        yield f"{name}{sign}{_text(name, value)}"


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        text = value.strip()
        # A file, standard input, or what another column is called.
        if text.startswith("@") or text.startswith("column:"):
            raise UsageError(f"the value of '{name}' is no number", hint="give the numbers themselves")
        return text
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, list) and _is_nested_numbers(value):
        return (
            json.dumps(value)
            .replace("true", "True")
            .replace("false", "False")
            .replace("NaN", "nan")
            .replace("Infinity", "inf")
        )
    raise UsageError(f"the value of '{name}' is a number, a text, or nested lists of numbers")


def _is_nested_numbers(value: list[Any]) -> bool:
    waiting = [value]
    while waiting:
        for each in waiting.pop():
            if isinstance(each, list):
                waiting.append(each)
            elif not isinstance(each, (bool, int, float)):
                return False
    return True
