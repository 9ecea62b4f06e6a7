"""The frozen syntax tree. Every node carries the span of the text that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, dataclass_transform
from typing import Literal as OneOf

from gradcli.errors import Span


@dataclass_transform(frozen_default=True, eq_default=False)
class _NodeType(type):
    """Makes frozen, slotted classes from annotations, as `dataclass` does.

    That would add 10 ms to every start, and half of that again for importing it.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _NodeType:
        own = tuple(namespace.get("__annotations__", ()))
        inherited = tuple(field for base in bases for field in base.__match_args__)  # type: ignore[attr-defined]
        namespace |= {"__slots__": own, "__match_args__": (*inherited, *own)}
        return super().__new__(cls, name, bases, namespace)


# Compared by identity: a structural comparison would recurse, and trees may be very deep.
class SyntaxNode(metaclass=_NodeType):
    """`__match_args__` names the fields, in the order of the constructor's arguments."""

    span: Span

    def __init__(self, *values: object, **named: object) -> None:
        fields = self.__match_args__
        if named:
            values += tuple(named.pop(field) for field in fields[len(values) :] if field in named)
        if named or len(values) != len(fields):
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}")
        for field, value in zip(fields, values, strict=True):
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")


class Expression(SyntaxNode):
    pass


class Statement(SyntaxNode):
    pass


class Number(Expression):
    value: float


class String(Expression):
    value: str


class Constant(Expression):
    """`True`, `False` or `None`."""

    value: bool | None


class Name(Expression):
    id: str


class List(Expression):
    """`[a, b]`."""

    items: tuple[Expression, ...]


class Tuple(List):
    """`(a, b)`: a list, except that `x[(a, b)]` is `x[a, b]`."""


class Unary(Expression):
    operator: OneOf["+", "-", "not"]
    operand: Expression


class Binary(Expression):
    """`operator_span` is the place of the operator itself; `^` is stored as `**`."""

    operator: OneOf["+", "-", "*", "/", "//", "%", "@", "**"]
    operator_span: Span
    left: Expression
    right: Expression


class Compare(Expression):
    """`a < b <= c`: one operator fewer than operands."""

    operators: tuple[OneOf["<", "<=", ">", ">=", "==", "!="], ...]
    operands: tuple[Expression, ...]


class Logical(Expression):
    """`a and b`, `a or b`."""

    operator: OneOf["and", "or"]
    left: Expression
    right: Expression


class Conditional(Expression):
    """`body if test else orelse`."""

    test: Expression
    body: Expression
    orelse: Expression


class Keyword(SyntaxNode):
    """`name=value` in a call, the name as written."""

    name: str
    value: Expression


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


class Attribute(Expression):
    """`x.T`."""

    value: Expression
    name: str
    name_span: Span


class Slice(SyntaxNode):
    """`start:stop:step` inside an index."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


class Ellipsis(SyntaxNode):
    """`...` inside an index."""


class Index(Expression):
    """`value[items]`; `x[None]` has a `Constant(None)` among its items."""

    value: Expression
    items: tuple[Expression | Slice | Ellipsis, ...]


class Evaluate(Statement):
    """An expression as a statement; the last one is the program's value."""

    value: Expression


class Assign(Statement):
    name: str
    name_span: Span
    value: Expression


class BoundName(SyntaxNode):
    """A name that a statement gives a value to: of a function's parameter, or of one part of several."""

    name: str


class Unpack(Statement):
    """`a, b = value`, the parts of one value, or `a, b = value, value`."""

    targets: tuple[BoundName, ...]
    values: tuple[Expression, ...]


class Backward(SyntaxNode):
    """`backward(cotangent) = a, b`: one expression per parameter of the function."""

    cotangent: BoundName
    gradients: tuple[Expression, ...]


class Define(Statement):
    """`f(a, b) = body`, with a hand-written derivative or without."""

    name: str
    name_span: Span
    parameters: tuple[BoundName, ...]
    body: Expression
    backward: Backward | None


class If(Statement):
    """`else if` is an `orelse` of one `If`."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class For(Statement):
    """`for name in iterable { body }`."""

    name: str
    name_span: Span
    iterable: Expression
    body: tuple[Statement, ...]


class While(Statement):
    test: Expression
    body: tuple[Statement, ...]


class Module(SyntaxNode):
    """A whole program and the text it came from."""

    source: str
    body: tuple[Statement, ...]


def positional(call: Call) -> tuple[Expression, ...]:
    """The positional arguments of a call, with the receiver of a method as the first."""
    return call.arguments if call.receiver is None else (call.receiver, *call.arguments)


def children(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """The direct child nodes, in the order of the text."""
    for field in node.__match_args__:
        value = getattr(node, field)
        if isinstance(value, SyntaxNode):
            yield value
        elif isinstance(value, tuple) and not isinstance(value, Span):
            yield from (item for item in value if isinstance(item, SyntaxNode))


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """`node` and everything below it, in the order of the text, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(children(current))))
