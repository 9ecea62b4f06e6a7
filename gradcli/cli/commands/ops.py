"""The command `gradcli ops`: describes the functions of the expression language."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any

from gradcli.arrays.flint.missing_ball_functions import REASONS
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import Table, show, show_json
from gradcli.errors import ExitStatus
from gradcli.language.names import reference
from gradcli.language.names.reference import Entry

_HELP = """\
NAME may be an alias or an operator. In the derivative g is the derivative by the function's result.

Examples:

  gradcli ops

  gradcli ops atan2

  gradcli ops '**' --json
"""


class OpsOptions(opt.Options):
    """The options of `gradcli ops`."""

    name: Annotated[str | None, opt.Argument(metavar="[NAME]", help="A function, constant or operator.")] = None
    json: opt.Json = False


def run(options: OpsOptions, environment: Environment) -> ExitStatus:
    """List all functions, or describe one; see `gradcli ops --help`."""
    name = options.name
    if options.json:
        show_json(_listing_json() if name is None else _description_json(reference.find(name)), environment)
    elif name is None:
        show([*_listing()], environment)
    else:
        _describe(reference.find(name), environment)
    return ExitStatus.SUCCESS


def _by_subject() -> Iterator[tuple[str, list[Entry]]]:
    for subject, members in groupby(reference.entries(), key=lambda entry: entry.subject):
        yield subject, [*members]


def _operators() -> list[tuple[str, str]]:
    return [(operator, reference.find(name).usage) for name, operator in reference.OPERATORS.items()]


def _listing() -> Iterator[Table]:
    for subject, members in _by_subject():
        yield Table((subject, ""), [(entry.usage, entry.operation.doc) for entry in members])
    yield Table(("operators", ""), _operators())


def _listing_json() -> dict[str, Any]:
    return {"functions": [_json(entry) for entry in reference.entries()]}


def _json(entry: Entry) -> dict[str, Any]:
    operation = entry.operation
    return {
        "name": operation.name,
        "subject": entry.subject,
        "signature": entry.usage,
        "operator": entry.operator,
        "aliases": operation.aliases,
        "doc": operation.doc,
        "derivative": operation.derivative,
        "domain": operation.domain,
        "edges": operation.edges,
        "digits": operation.name not in REASONS,
    }


def _description_json(entry: Entry) -> dict[str, Any]:
    from gradcli.cli.commands import example

    shown = example.worked(entry.operation, json=True)
    return _json(entry) | {"example": {"command": shown.command, "output": json.loads(shown.output)}}


def _describe(entry: Entry, environment: Environment) -> None:
    from gradcli.cli.commands import example

    operation = entry.operation
    shown = example.worked(operation, json=False)
    rows = {
        entry.usage: operation.doc,
        "operator": entry.operator,
        "aliases": ", ".join(operation.aliases),
        "derivative": operation.derivative,
        "domain": operation.domain,
        "edges": "\n".join(operation.edges),
        "digits": _digits(operation.name),
        "example": shown.command,
    }
    show([Table((), [(name, text) for name, text in rows.items() if text])], environment)
    environment.write(f"\n{shown.output}")


def _digits(name: str) -> str:
    """Whether a function has proved digits, and why not."""
    return f"none: ball arithmetic has no {REASONS[name]}" if name in REASONS else "proved, with --digits"


_PAGE_HEAD = """\
# The functions of the language

In the column of derivatives, g is the derivative of the program's value by the function's result. The expressions are the derivatives by
each operand in turn.
Elementwise and special functions broadcast their operands. `gradcli ops NAME` shows the same with an example.
`python -m tests.test_ops` writes this page.

## Contents

"""


def page() -> str:
    """The functions as a Markdown page."""
    sections = "".join(f"\n## {title}\n\n{table}" for title, table in _sections())
    return f"{_PAGE_HEAD}{''.join(_contents())}{sections}"


def _contents() -> Iterator[str]:
    """A line for each subject with links to its functions, and one with the further tables."""
    for subject, members in _by_subject():
        names = " ".join(f"[{_code(entry.operation.name)}](#{_anchor(entry)})" for entry in members)
        yield f"- {_link(subject.capitalize())}: {names}\n"
    yield f"- {', '.join(map(_link, _FURTHER))}\n"


def _link(title: str) -> str:
    return f"[{title}](#{title.lower().replace(' ', '-')})"


def _anchor(entry: Entry) -> str:
    # With a prefix, as some functions are called like subjects, and case is not told apart everywhere: Max and max.
    name = entry.operation.name
    return f"{'symbolic' if name[0].isupper() else 'function'}-{name.lower()}"


# The titles of the tables that are not of one subject.
_FURTHER = ("Operators", "At the edges", "Without proved digits")


def _sections() -> Iterator[tuple[str, str]]:
    header = ("function", "computes", "derivative", "domain", "also called")
    for subject, members in _by_subject():
        yield subject.capitalize(), _markdown(header, [_page_row(entry) for entry in members])
    operators, at_edges, without_digits = _FURTHER
    yield operators, _markdown(("operator", "function"), [(_code(o), _code(usage)) for o, usage in _operators()])
    edges = [(_code(e.operation.name), _prose(text)) for e in reference.entries() for text in e.operation.edges]
    yield at_edges, _markdown(("function", "convention"), edges)
    lacking = [(_code(name), REASONS[name]) for name in sorted(REASONS)]
    yield without_digits, _markdown(("function", "ball arithmetic has no"), lacking)


def _page_row(entry: Entry) -> tuple[str, ...]:
    operation = entry.operation
    return (
        f'<a id="{_anchor(entry)}"></a>{_code(entry.usage)}',
        _prose(operation.doc),
        _code(operation.derivative),
        _prose(operation.domain),
        ", ".join(map(_code, operation.aliases)),
    )


def _code(text: str) -> str:
    return f"`{text}`"


def _prose(text: str) -> str:
    return text.replace("*", r"\*")


def _markdown(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


COMMAND = Command(OpsOptions, run, _HELP)
