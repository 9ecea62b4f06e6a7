"""Programs as text, to a frozen tree with places.

`parse` gives the tree of a program, `parse_expression` that of a single expression; the nodes are
in `gradcli.syntax.tree`. Both raise `ProgramSyntaxError` and nothing else.
"""

from gradcli.syntax.lexer import MAX_LENGTH, MAX_NESTING
from gradcli.syntax.parser import parse, parse_expression

__all__ = ["MAX_LENGTH", "MAX_NESTING", "parse", "parse_expression"]
