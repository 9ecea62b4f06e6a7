"""Help pages, written from the declarations of the options: a page of a screen, and one of every option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

from gradcli.cli.options import LIMITS, OUTPUT, Field, Option, argument, fields
from gradcli.cli.process.environment import Environment

# The width, in characters, where the terminal does not say one; the most that a line of prose has, as longer ones are
# hard to read; and the width from which explanations stand beside what they explain.
_WIDTH, _LONGEST, _BESIDE = 80, 100, 60
# Examples of the page of a screen.
_EXAMPLES = 3
# The text below the commands on the first screen.
_ALSO = ("sample", "design", "ops", "backends", "help", "completion", "serve")
_STARTS = (
    ("gradcli eval 'log(x**q)' x=5 q=3", "a value and its derivatives"),
    ("gradcli diff 'log(x**q)'", "derivatives as formulas"),
    ("gradcli plot 'sin(x)/x' x=-9..9", "a picture"),
)


def general_page(environment: Environment, commands: Mapping[str, str]) -> str:
    """The page of `gradcli --help`; `commands` maps names to one-line summaries."""
    page = _Page(environment)
    page.prose("Exact derivatives: how fast a result changes with each of its inputs.")
    page.blank()
    page.rows(_STARTS)
    page.blank()
    page.rows((name, summary) for name, summary in commands.items() if name not in _ALSO)
    page.blank()
    page.prose(f"Also {', '.join(name for name in _ALSO if name in commands)}, and --version, -V.")
    page.prose("gradcli COMMAND -h explains a command, gradcli help WORD whatever has a name.")
    return page.text()


def command_page(environment: Environment, name: str, summary: str, options: type, text: str) -> str:
    """The help page of a command that fits a screen: what it is for, examples, and the options that most need."""
    page = _Page(environment)
    page.verbatim([f"gradcli {name} {_usage(options)}".rstrip()])
    page.prose(summary)
    page.blank()
    fitting = [example for example in examples(text) if len(example) <= _WIDTH - 3]
    page.verbatim(f"  {example}" for example in fitting[:_EXAMPLES])
    declared = _optional(options)
    short = [field for field in declared if field.declared.brief]
    for title in ("Options", OUTPUT):
        members = [field for field in short if (field.declared.group == OUTPUT) is (title == OUTPUT)]
        if members:
            page.heading(title)
            page.rows((_names(field), field.declared.brief) for field in members)
    page.blank()
    page.prose(
        f"gradcli {name} --help-all explains {f'all {len(declared)} options' if declared[1:] else 'its option'}."
    )
    return page.text()


def full_page(environment: Environment, name: str, summary: str, options: type, text: str) -> str:
    """The help page of a command with every option, the limits last."""
    page = _Page(environment)
    page.verbatim([f"gradcli {name} {_usage(options)}".rstrip()])
    page.prose(summary)
    for paragraph in paragraphs(text):
        page.blank()
        page.prose(paragraph)
    words = argument(options)
    if words is not None:
        page.blank()
        page.rows([(words.declared.metavar, words.declared.help)])
    page.heading("Examples")
    page.verbatim(f"  {example}" for example in examples(text))
    for group, members in _grouped(_optional(options)):
        page.heading(group)
        page.rows((_names(field), described(field)) for field in members)
    return page.text()


def commands_page(environment: Environment, commands: Mapping[str, str]) -> str:
    """Commands with their summaries."""
    page = _Page(environment)
    page.rows((f"gradcli {name}", summary) for name, summary in commands.items())
    return page.text()


def option_page(environment: Environment, of_commands: Mapping[str, Field]) -> str:
    """The descriptions of an option, by the names of the commands that have it."""
    page = _Page(environment)
    meanings: dict[str, list[str]] = {}
    for command, field in of_commands.items():
        meanings.setdefault(f"{_names(field)}\n{described(field)}", []).append(command)
    for meaning, commands in meanings.items():
        names, _, text = meaning.partition("\n")
        page.rows([(names, text), ("", f"of gradcli {', '.join(commands)}")])
    return page.text()


def examples(text: str) -> list[str]:
    """The examples in the text of a command, a line each."""
    _, _, shown = text.partition("Examples:\n")
    return [line.strip() for line in shown.splitlines() if line.strip()]


def paragraphs(text: str) -> list[str]:
    """The paragraphs in the text of a command before its examples."""
    prose, _, _ = text.partition("Examples:\n")
    return [" ".join(paragraph.split()) for paragraph in prose.split("\n\n") if paragraph.strip()]


def grouped_options(options: type) -> list[tuple[str, list[tuple[str, str]]]]:
    """The options of a command by group: their names, and what they mean."""
    return [(group, [(_names(f), described(f)) for f in members]) for group, members in _grouped(_optional(options))]


def described(field: Field) -> str:
    """The description of an option, with its bounds and its default."""
    declared, default = field.declared, field.default
    low, high = declared.min, declared.max
    bounds = f" From {low} to {high}." if None not in (low, high) else f" {low} or more." if low is not None else ""
    shown = f" Default: {default}." if type(default) in (int, float, str) and default != "" else ""
    return f"{declared.help}{bounds}{shown}"


def _usage(options: type) -> str:
    words = argument(options)
    return "" if words is None else words.declared.metavar


def _optional(options: type) -> list[Field]:
    return [field for field in fields(options) if isinstance(field.declared, Option)]


def _names(field: Field) -> str:
    declared = field.declared
    short = f"{declared.short}, " if declared.short else ""
    return f"{short}{declared.name} {declared.metavar or ''}".rstrip()


def _grouped(members: Sequence[Field]) -> list[tuple[str, list[Field]]]:
    """The options by the groups in which they are declared; the limits stand last."""
    groups: dict[str, list[Field]] = {}
    for field in members:
        groups.setdefault(field.declared.group, []).append(field)
    return sorted(groups.items(), key=lambda group: group[0] == LIMITS)


class _Page:
    """The lines of a page, in the width of the terminal. What can be copied is never wrapped."""

    def __init__(self, environment: Environment) -> None:
        self._width = min(width(environment), _LONGEST)
        self._bold = ("\x1b[1m", "\x1b[0m") if environment.for_terminal else ("", "")
        self._lines: list[str] = []

    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def blank(self) -> None:
        self._lines.append("")

    def heading(self, title: str) -> None:
        on, off = self._bold
        self._lines += ["", f"{on}{title}{off}"]

    def prose(self, text: str) -> None:
        self._lines += _wrapped(text, self._width - 1)

    def verbatim(self, lines: Iterable[str]) -> None:
        self._lines += lines

    def rows(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names, each with its explanation beside or below."""
        found = [*rows]
        # A long name has its explanation below it, and does not push the others aside.
        beside = max((len(name) for name, _ in found if len(name) <= self._width // 2 - 4), default=0) + 4
        for name, text in found:
            lines = _wrapped(text, self._width - beside - 1) if self._width >= _BESIDE else []
            if lines and len(name) <= beside - 4:
                self._lines += [f"  {name:{beside - 2}}{lines[0]}", *(" " * beside + line for line in lines[1:])]
            elif lines:
                self._lines += [f"  {name}", *(" " * beside + line for line in lines)]
            else:
                self._lines += [f"  {name}", *(f"      {line}" for line in _wrapped(text, self._width - 7))]


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


def width(environment: Environment) -> int:
    """The width to write in, that of the terminal where there is one."""
    said = environment.variables.get("COLUMNS", "")
    return int(said) if said.isdecimal() and int(said) else environment.columns or _WIDTH
