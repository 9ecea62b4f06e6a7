"""Tests the manual pages in man/, which the wheel installs: they say what the help says, and man shows them without
warnings. `python -m tests.cli.test_man_pages` writes them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli import __version__
from gradcli.cli import help_pages
from gradcli.cli.command import Command, command_named
from gradcli.cli.main import COMMANDS
from gradcli.cli.options import argument

MAN = Path(__file__).resolve().parents[2] / "man"
# Characters that troff sets as typographic ones or reads as commands, and what stands for them as they are.
_ROFF = str.maketrans({"\\": r"\e", "'": r"\(aq", "-": r"\-", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga", '"': r"\(dq"})
_STATUSES = (
    ("0", "The results were written."),
    ("1", "The program is right, but it could not be evaluated or differentiated, or a result could not be written."),
    ("2", "The command line, the syntax, a name or a value is wrong."),
    ("130", "Interrupted."),
)
_VARIABLES = (
    ("NO_COLOR", "If set, tables are plain also on a terminal."),
    ("COLUMNS", "The width in which help is written; otherwise that of the terminal."),
)


def pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    found = {"gradcli.1": "\n".join([*_general(), ""])}
    for name, summary in COMMANDS.items():
        found[f"gradcli-{name}.1"] = "\n".join([*_of_command(name, summary, command_named(name)), ""])
    return found


def _general() -> Iterator[str]:
    yield from _head("gradcli", "exact derivatives of a formula")
    yield from ("\\fBgradcli\\fR \\fICOMMAND\\fR [\\fIWORDS\\fR]... [\\fIOPTIONS\\fR]", ".SH DESCRIPTION")
    yield _text("gradcli computes the value of a formula and its exact derivative by every input. The results are")
    yield _text("written to standard output, everything else to standard error.")
    yield ".SH COMMANDS"
    for name, summary in COMMANDS.items():
        yield from _item(f"\\fBgradcli\\-{name}\\fR(1)", summary)
    yield ".SH OPTIONS"
    yield from _item("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "The commands, or behind a command its help on one screen.")
    yield from _item("\\fB\\-\\-help\\-all\\fR", "Behind a command: all of its options.")
    yield from _item("\\fB\\-V\\fR, \\fB\\-\\-version\\fR", "The version.")
    yield ".SH EXIT STATUS"
    for status, meaning in _STATUSES:
        yield from _item(status, meaning)
    yield ".SH ENVIRONMENT"
    for variable, meaning in _VARIABLES:
        yield from _item(f"\\fB{variable}\\fR", meaning)
    yield from _examples(["gradcli eval 'log(x**q)' x=5 q=3", "gradcli diff 'log(x**q)'", "gradcli help order"])


def _of_command(name: str, summary: str, command: Command) -> Iterator[str]:
    yield from _head(f"gradcli-{name}", summary.rstrip("."))
    words = argument(command.options)
    yield f"\\fBgradcli {name}\\fR {_text('' if words is None else words.declared.metavar)} [\\fIOPTIONS\\fR]"
    yield ".SH DESCRIPTION"
    yield _text(summary)
    for paragraph in help_pages.paragraphs(command.help):
        yield from (".PP", _text(paragraph))
    if words is not None:
        yield from _item(_text(words.declared.metavar), words.declared.help)
    yield ".SH OPTIONS"
    for group, options in help_pages.grouped_options(command.options):
        yield f".SS {group}"
        for names, meaning in options:
            yield from _item(f"\\fB{_text(names)}\\fR", meaning)
    yield from _examples(help_pages.examples(command.help))
    yield from (".SH SEE ALSO", ".BR gradcli (1)")


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "gradcli {__version__}" "gradcli"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS")


def _item(term: str, meaning: str) -> Iterator[str]:
    yield from (".TP", term, _text(meaning))


def _examples(lines: list[str]) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for line in lines:
        yield from (".PP", ".nf", f"    {_text(line)}", ".fi")


def _text(text: str) -> str:
    found = text.translate(_ROFF)
    return f"\\&{found}" if found.startswith((".", "'")) else found


@pytest.mark.all_cases
@pytest.mark.parametrize("name", pages())
def test_a_page_is_current(name):
    assert (MAN / name).read_text(encoding="utf-8") == pages()[name], (
        "python -m tests.cli.test_man_pages writes it anew"
    )


def test_there_is_no_other_page():
    assert {path.name for path in MAN.iterdir()} == {*pages()}


@pytest.mark.skipif(shutil.which("man") is None or shutil.which("groff") is None, reason="there is no man")
@pytest.mark.parametrize("name", ["gradcli.1", "gradcli-eval.1", "gradcli-propagate.1"])
def test_man_shows_a_page_without_warnings(name):
    # C.UTF-8, as quotes of examples must be those that were typed in any encoding.
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": ""}
    words = ["man", "--warnings", "-P", "cat", "-l", str(MAN / name)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = re.sub(r".\x08", "", done.stdout)
    example = "gradcli eval 'log(x**q)' x=5 q=3" if "propagate" not in name else "gradcli propagate 'V/I' V=5.0±0.1"
    assert example in shown


if __name__ == "__main__":
    MAN.mkdir(exist_ok=True)
    for name, text in pages().items():
        (MAN / name).write_text(text, encoding="utf-8")
