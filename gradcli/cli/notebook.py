"""The extension for IPython and Jupyter, `%load_ext gradcli`: `%gradcli` and `%%gradcli` run a command line, with the
names of the notebook as the values of those that a program reads."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numpy as np

from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import IO, Any

# The picture of a command that was asked for none is drawn for the notebook.
_PICTURE = "notebook.svg"
# The options for JSON and for help, beside which nothing is displayed.
_AS_PRINTED = {"--json", "-j", "--help", "--help-all"}
# The commands that continue until they are stopped.
_OF_TERMINALS = ("shell", "serve")
_USAGE = "%gradcli eval 'log(x**q)' q=3, or %%gradcli eval q=3 with the program in the lines below"


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext gradcli`."""
    shell.register_magic_function(lambda line, cell=None: run(shell, line, cell), "line_cell", "gradcli")


class _Outcome(NamedTuple):
    status: ExitStatus
    out: str
    err: str
    saved: Mapping[str, bytes]


def run(shell: Any, line: str, cell: str | None = None) -> Any:
    """Run a command line and display its result. With --json, the result is returned as a dictionary.

    Raises IPython's UsageError where the command fails, so that a notebook stops there.
    """
    from IPython.core.error import UsageError

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"the command line cannot be split into words: {error}") from None
    if not words:
        raise UsageError(_USAGE)
    command, *rest = words
    if command in _OF_TERMINALS:
        raise UsageError(f"gradcli {command} runs in a terminal, and here the cells are the session")
    if cell is not None:
        rest = [cell.strip("\n"), *rest]
    display = _display_of(command, rest)
    done = _call([command, *rest, *display.options], _values(shell.user_ns, command))
    if done.err:
        print(done.err.rstrip("\n"), file=sys.stderr)
    if done.status is not ExitStatus.SUCCESS:
        print(done.out, end="")
        raise UsageError(f"gradcli {command} failed, with status {int(done.status)}")
    return display.show(done)


def _call(arguments: Sequence[str], values: Mapping[str, Any]) -> _Outcome:
    """A command line with streams in memory; a picture for the notebook is kept, and other files are written."""
    out, err, saved = io.StringIO(), io.StringIO(), dict[str, bytes]()
    written = Environment(None, out, err, os.environ).save

    def save(path: str, write: Callable[[IO[bytes]], object]) -> None:
        if path != _PICTURE:
            written(path, write)
            return
        stream = io.BytesIO()
        write(stream)
        saved[path] = stream.getvalue()

    status = main(arguments, Environment(None, out, err, os.environ, save, names=values))
    return _Outcome(status, out.getvalue(), err.getvalue(), saved)


# --- what is displayed


class _Display(NamedTuple):
    """The options to add to a command line, and what shows its result."""

    options: Sequence[str]
    show: Callable[[_Outcome], Any]


def _display_of(command: str, words: Sequence[str]) -> _Display:
    named = {word.partition("=")[0] for word in words if word.startswith("-")}
    if named & _AS_PRINTED or [*words] == ["-h"]:
        return _Display([], _parsed)
    if command == "plot" and not {"--output", "-o"} & named:
        return _Display(["--output", _PICTURE], lambda done: _svg(done.saved[_PICTURE].decode()))
    if command == "graph" and "--to" not in named:
        return _Display(["--to", "svg"], lambda done: _svg(done.out))
    if command == "diff" and not {"--to", "--dialect"} & named:
        return _Display(["--to", "latex", "--json"], _formulas)
    return _Display([], _printed)


def _parsed(done: _Outcome) -> Any:
    try:
        return json.loads(done.out)
    except json.JSONDecodeError:
        return _printed(done)


def _printed(done: _Outcome) -> None:
    print(done.out, end="")


def _svg(text: str) -> None:
    from IPython.display import SVG, display

    display(SVG(text))


def _formulas(done: _Outcome) -> None:
    """The derivatives as one display: each is the partial derivative by the names that it is taken by."""
    from IPython.display import Latex, display

    record = json.loads(done.out)
    for warning in record.get("warnings", ()):
        print(f"warning: {warning['message']}", file=sys.stderr)
    lines = [rf"{_partial(by.split(','))} &= {formula}" for by, formula in record["derivatives"].items()]
    display(Latex("\n".join([r"$$\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}$$"])))


def _partial(names: Sequence[str]) -> str:
    from gradcli.formulas import languages

    spelled = languages.find("latex").naming
    below = r" \, ".join(rf"\partial {_first(spelled, name)}" for name in names)
    above = r"\partial" if len(names) == 1 else rf"\partial^{{{len(names)}}}"
    return rf"\frac{{{above}}}{{{below}}}"


def _first(naming: Any, name: str) -> str:
    found = re.fullmatch(r"(\w+)(\[.*\])?", name)
    owner, key = (found[1], found[2] or "") if found else (name, "")
    spelled = next(iter(naming.spellings(owner)))
    return f"{spelled}_{{{key.strip('[]')}}}" if key else spelled


# --- the names of the notebook


def _values(namespace: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The names of a notebook whose values are numbers or arrays of them. `gradcli diff` gets the arrays alone, whose
    shapes it needs: a formula of a name stays one."""
    found = {}
    for name, value in namespace.items():
        if name.startswith("_") or (number := _number(value)) is None:
            continue
        if command != "diff" or number.shape:
            found[name] = number
    return found


def _number(value: Any) -> Any:
    """A value as an array of numbers or truth values; None if it is none."""
    if isinstance(value, (str, bytes, type, ModuleType)) or callable(value):
        return None
    if isinstance(value, (list, tuple)) and not value:
        return None
    if not isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        value = _content(value)
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.dtype.kind in "biuf" else None


def _content(value: Any) -> Any:
    """The numbers of a tensor of PyTorch or of this library, or of a column of pandas or Polars; None of others."""
    try:
        if hasattr(value, "detach"):
            value = value.detach()
            return value.cpu().numpy() if hasattr(value, "cpu") else value.numpy()
        return value.to_numpy() if hasattr(value, "to_numpy") and not hasattr(value, "columns") else None
    except Exception:
        # An object of a notebook may be of any class, and have any method.
        return None
