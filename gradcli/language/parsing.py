"""Parses a program within the limits of the run."""

from __future__ import annotations

from gradcli import limits
from gradcli.language.syntax import parse, tree

# Cost of parsing and analysing one node, in eighths of a step, as measured for chains of 500,000 `.T`.
_NODE_COST = 24


def parse_charged(source: str) -> tree.Module:
    """The syntax tree of a program.

    Raises ProgramSyntaxError, located in `source`, and LimitError for a tree of too many nodes.
    """
    return charge_parsing(parse(source))


def charge_parsing(program: tree.Module) -> tree.Module:
    """A parsed program, after its cost was charged. Raises LimitError for a tree of too many nodes."""
    limits.charge_steps(_NODE_COST * len(tree.all_nodes(program)))
    return program
