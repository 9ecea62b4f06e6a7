"""The frozen syntax tree. Every node carries the span of the text that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from gradcli.errors import Span


# Compared by identity: a structural comparison would recurse, and trees may be thousands of nodes deep.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    span: Span


class Expression(Node):
    __slots__ = ()


class Statement(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Number(Expression):
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class String(Expression):
    value: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Expression):
    """`True`, `False` or `None`."""

    value: bool | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name(Expression):
    id: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class List(Expression):
    """`[a, b]`, and a parenthesised tuple `(a, b)` as in `axis=(0, 1)`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Expression):
    operator: OneOf["+", "-", "not"]
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Expression):
    """`operator_span` is the place of the operator itself; `^` is stored as `**`."""

    operator: OneOf["+", "-", "*", "/", "//", "%", "@", "**"]
    operator_span: Span
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Expression):
    """`a < b <= c`: one operator fewer than operands."""

    operators: tuple[OneOf["<", "<=", ">", ">=", "==", "!="], ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Logical(Expression):
    """`a and b`, `a or b`."""

    operator: OneOf["and", "or"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Conditional(Expression):
    """`body if test else orelse`."""

    test: Expression
    body: Expression
    orelse: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keyword(Node):
    """`name=value` in a call, the name as written."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expression):
    """`name(arguments, keywords)`.

    A method call `x.name(a)` is stored with `receiver=x`. A library prefix (`np.`, `torch.`, …)
    has been dropped from `name`; `name_span` is the place of the name itself.
    """

    name: str
    name_span: Span
    receiver: Expression | None
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute(Expression):
    """`x.T`."""

    value: Expression
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Node):
    """`start:stop:step` inside an index."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ellipsis(Node):
    """`...` inside an index."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(Expression):
    """`value[items]`; `x[None]` has a `Constant(None)` among its items."""

    value: Expression
    items: tuple[Expression | Slice | Ellipsis, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluate(Statement):
    """An expression as a statement; the last one is the program's value."""

    value: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assign(Statement):
    name: str
    name_span: Span
    value: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parameter(Node):
    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Backward(Node):
    """`backward(cotangent) = a, b`: one expression per parameter of the function."""

    cotangent: Parameter
    gradients: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Define(Statement):
    """`f(a, b) = body`, with a hand-written derivative or without."""

    name: str
    name_span: Span
    parameters: tuple[Parameter, ...]
    body: Expression
    backward: Backward | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(Statement):
    """`else if` is an `orelse` of one `If`."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For(Statement):
    """`for name in iterable { body }`."""

    name: str
    name_span: Span
    iterable: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class While(Statement):
    test: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program(Node):
    """A whole program and the text it came from."""

    source: str
    body: tuple[Statement, ...]


def children(node: Node) -> Iterator[Node]:
    """The direct child nodes, in the order of the text."""
    for field in node.__dataclass_fields__:
        value = getattr(node, field)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple) and not isinstance(value, Span):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, in the order of the text, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(children(current))))
