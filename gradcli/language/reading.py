"""Reading a program: from its text to a tree, within the limits of the run."""

from __future__ import annotations

from gradcli import limits
from gradcli.language.syntax import parse, tree

# To parse the text and to look through what was found, in eighths of steps for each part of it.
_PART = 24


def read(source: str) -> tree.Module:
    """The tree of a program. Raises ProgramSyntaxError, located in `source`, and LimitError for one of too many parts."""
    return charged(parse(source))


def charged(program: tree.Module) -> tree.Module:
    """A program that was parsed. Raises LimitError for one of too many parts."""
    limits.charge_steps(_PART * len(tree.everything(program)))
    return program
