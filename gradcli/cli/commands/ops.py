"""The command `gradcli ops`: describes the functions of the expression language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from gradcli.arrays.flint.flint_names import MISSING_FUNCTIONALS, MISSING_FUNCTIONS
from gradcli.cli import help_pages
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import show, show_json
from gradcli.errors import ExitStatus, UnknownNameError
from gradcli.io.text_tables import Table
from gradcli.language.names import reference
from gradcli.language.names.reference import Entry
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.type_hints import Annotated, Any

_HELP = """\
WORD is a function, an alias or an operator, which are described; or a group, whose functions are listed; or
what is looked for in names and descriptions. In the derivative g is the derivative by the function's result.

Examples:

  gradcli ops

  gradcli ops atan2

  gradcli ops 'standard deviation'

  gradcli ops '**' --json
"""


class OpsOptions(opt.Options):
    """The options of `gradcli ops`."""

    name: Annotated[
        str | None,
        opt.Argument(metavar="[WORD]", help="A function, constant or operator, a group, or a word to look for."),
    ] = None
    json: opt.Json = False


def run(options: OpsOptions, environment: Environment) -> ExitStatus:
    """List the groups of functions, or describe what a word means; see `gradcli ops --help`."""
    name = options.name
    if name is None and options.json:
        show_json({"functions": [_json(entry) for entry in reference.entries()]}, environment)
    elif name is None:
        environment.write(_overview(help_pages.width(environment)))
        environment.write(help_pages.commands_page(environment, _USES))
    else:
        _show_meaning(name, options.json, environment)
    return ExitStatus.SUCCESS


# The text below the groups.
_USES = {
    "ops NAME": "describes a function: gradcli ops log",
    "ops GROUP": "lists a group: gradcli ops losses",
    "ops WORD": "searches: gradcli ops 'standard deviation'",
}
# The width from which names stand beside the title of their group.
_BESIDE = 60


def is_described(word: str) -> bool:
    """Return whether a word is the name of a function or a keyword of a statement."""
    return word in _KEYWORDS or any(word in (e.operation.name, *e.operation.aliases) for e in reference.entries())


def is_found(word: str) -> bool:
    """Return whether `gradcli ops WORD` finds something."""
    try:
        reference.find(_ELSEWHERE.get(word, word))
    except UnknownNameError:
        found = _group(word) or _search(word)
        return bool(found.entries or found.statements)
    return True


def _show_meaning(name: str, json: bool, environment: Environment) -> None:
    """Describe a function, list a group, or list what a search finds. Raises UnknownNameError where there is
    nothing."""
    word = _ELSEWHERE.get(name, name)
    try:
        entry = reference.find(word)
    except UnknownNameError:
        found = _group(word) or _search(word)
        if table.why_missing(word) or not (found.entries or found.statements):
            raise
        if json:
            show_json({"functions": [_json(entry) for entry in found.entries]}, environment)
        else:
            show([*found.tables()], environment)
    else:
        if json:
            show_json(_description_json(entry), environment)
        else:
            _describe(entry, environment)


# Symbols of other languages for functions that are called by another name here.
_ELSEWHERE = {"^": "**", "!": "factorial", "√": "sqrt", "∫": "integrate", "∑": "sum", "Σ": "sum", "∂": "diff", "·": "*"}

_KEYWORDS = ("=", "if", "else", "for", "while", "lambda", "backward", "and", "or", "not")
# The longest call that a list of functions shows, in characters, and the most functions that a description refers to.
_MOST_USAGE, _MOST_RELATED = 26, 12
# What ball arithmetic would need for the functions without proved digits.
_WITHOUT_DIGITS = MISSING_FUNCTIONS | MISSING_FUNCTIONALS

# The statements of the language as they are written, and what they do.
STATEMENTS = (
    ("y = x**2; y + 1", "give a value a name; statements are separated by ; or new lines"),
    ("y += x", "change a name: also -= *= /= **="),
    ("if x > 0 { y = x } else { y = -x }; y", "take one of two branches"),
    ("x if x > 0 else -x", "the same as an expression"),
    ("y = 0; for i in range(3) { y = y + x }; y", "a loop over numbers or the elements of a tensor"),
    ("y = x; while y < 10 { y = y*2 }; y", "a loop as long as a condition holds"),
    ("f(t) = t**2; f(x)", "a function of your own"),
    ("f = lambda t: t**2; f(x)", "a function without a name"),
    ("cube(t) = t**3 backward(g) = 3*g*t**2; cube(x)", "a function with a derivative of your own"),
    ("[t*x for t in range(3)]", "a list from a loop"),
    ("x > 0 and x < 5", "conditions: and or not"),
    ("[x, 2, 3][0:2]", "elements and slices of a tensor"),
)


class _Found(NamedTuple):
    """The functions and the statements of a group, or those that a search finds."""

    entries: Sequence[Entry]
    statements: Sequence[tuple[str, str]] = ()

    def tables(self) -> Iterator[Table]:
        if self.entries:
            rows = [(_short_usage(entry), entry.operation.doc) for entry in self.entries]
            yield Table(("function", "computes"), rows)
        if self.statements:
            yield Table(("statement", "is for"), self.statements)


def _short_usage(entry: Entry) -> str:
    """The text of a call of a function, without operands where there are many."""
    return entry.usage if len(entry.usage) <= _MOST_USAGE else entry.operation.name


def _group(title: str) -> _Found | None:
    """The members of a group."""
    if title.casefold() == "statements":
        return _Found((), STATEMENTS)
    if title.casefold() == "operators":
        return _Found((), _operators())
    members = [entry for entry in reference.entries() if entry.subject == title.casefold()]
    return _Found(members) if members else None


def _search(text: str) -> _Found:
    """The functions and statements in whose names and descriptions all words of a text begin a word, those first that
    are called so."""
    words = text.casefold().split()
    if not words:
        return _Found(())
    if text in _KEYWORDS:
        return _Found((), [row for row in STATEMENTS if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", row[0])])
    found = [e for e in reference.entries() if _has_all(words, (*_description(e), e.operator or "", e.subject))]
    by_name = sorted(found, key=lambda e: not _has_all(words, _names(e)))
    return _Found(by_name, [row for row in STATEMENTS if _has_all(words, row)])


def _has_all(words: Sequence[str], texts: Iterable[str]) -> bool:
    """Return whether each word begins a word of some texts."""
    known = " ".join(texts).casefold()
    return all(re.search(rf"(?<![^\W_]){re.escape(word)}", known) for word in words)


def _names(entry: Entry) -> tuple[str, ...]:
    return (entry.operation.name, *entry.operation.aliases)


def _description(entry: Entry) -> tuple[str, ...]:
    return (*_names(entry), entry.operation.doc)


# The width of the titles of groups.
_TITLES = 14


def _overview(width: int) -> str:
    """The groups, with as many names of each as fit a line."""
    groups = [(subject, [entry.operation.name for entry in members]) for subject, members in _by_subject()]
    operators = [reference.symbol(usage) for usage in dict(_operators())]
    lines = [*_overview_lines([*groups, ("operators", [*dict.fromkeys(operators)])], width)]
    lines += _overview_lines([("statements", list(_KEYWORDS))], width)
    return "\n".join([*lines, "", ""])


def _overview_lines(groups: Iterable[tuple[str, list[str]]], width: int) -> Iterator[str]:
    for title, names in groups:
        head = f"{title:{_TITLES}}  "
        if len(title) > _TITLES or width < _BESIDE:
            yield title
            head = "  " if width < _BESIDE else " " * (_TITLES + 2)
        shown = len(names)
        while shown > 1 and len(_shown(head, names, shown)) >= width:
            shown -= 1
        yield _shown(head, names, shown)


def _shown(head: str, names: Sequence[str], count: int) -> str:
    more = f" and {len(names) - count} more" if count < len(names) else ""
    return f"{head}{' '.join(names[:count])}{more}"


def _by_subject() -> Iterator[tuple[str, list[Entry]]]:
    for subject, members in groupby(reference.entries(), key=lambda entry: entry.subject):
        yield subject, [*members]


def _operators() -> list[tuple[str, str]]:
    """The calls of operators, and of the functions that they stand for."""
    return [(operator, reference.find(name).usage) for name, operator in reference.OPERATORS.items()]


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
        "digits": operation.name not in _WITHOUT_DIGITS,
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
        "see also": _related(entry),
        "example": shown.command,
    }
    show([Table((), [(name, text) for name, text in rows.items() if text])], environment)
    environment.write(f"\n{shown.output}")


def _related(entry: Entry) -> str:
    """The functions in whose descriptions the name of a function is a word, where these are few."""
    word = entry.operation.name.casefold()
    others = [e.operation.name for e in reference.entries() if e is not entry and _has_all([word], _description(e))]
    return ", ".join(others) if len(others) <= _MOST_RELATED else ""


def _digits(name: str) -> str:
    """Return whether a function has proved digits, and why not."""
    lacking = _WITHOUT_DIGITS.get(name)
    return f"none: ball arithmetic has no {lacking}" if lacking else "proved, with --digits"


_PAGE_HEAD = """\
# The functions of the language

In the column of derivatives, g is the derivative of the program's value by the function's result. The expressions are the derivatives by
each operand in turn.
Elementwise and special functions broadcast their operands. `gradcli ops NAME` shows the same with an example.
`python -m tests.cli.test_ops` writes this page.

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
    lacking = [(_code(name), reason) for name, reason in sorted(_WITHOUT_DIGITS.items())]
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
