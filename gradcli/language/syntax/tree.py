"""The frozen syntax tree. Every node carries the span of the text that it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, dataclass_transform
from typing import Literal as OneOf

from gradcli.errors import Span

# Fields that never hold nodes, by their annotations.
_PLAIN = ("Span", "str", "float", "bool | None", "OneOf", "tuple[OneOf")


def _constructor(slots: list[Callable[[Any, object], None]]) -> Callable[..., None]:
    """`__init__` with the fields by position, each put into its slot. A long program calls it a million
    times: a loop would take four times as long."""

    def one(self: Any, a: object) -> None:
        set_a(self, a)

    def two(self: Any, a: object, b: object) -> None:
        set_a(self, a)
        set_b(self, b)

    def three(self: Any, a: object, b: object, c: object) -> None:
        set_a(self, a)
        set_b(self, b)
        set_c(self, c)

    def four(self: Any, a: object, b: object, c: object, d: object) -> None:
        three(self, a, b, c)
        set_d(self, d)

    def five(self: Any, a: object, b: object, c: object, d: object, e: object) -> None:
        set_a(self, a)
        set_b(self, b)
        set_c(self, c)
        set_d(self, d)
        set_e(self, e)

    def six(self: Any, a: object, b: object, c: object, d: object, e: object, f: object) -> None:
        five(self, a, b, c, d, e)
        set_f(self, f)

    set_a, set_b, set_c, set_d, set_e, set_f = [*slots, *slots[:1] * 5][:6]
    return (one, two, three, four, five, six)[len(slots) - 1]


@dataclass_transform(frozen_default=True, eq_default=False)
class _NodeType(type):
    """Makes frozen, slotted classes from annotations, as `dataclass` does.

    That would add 10 ms to every start, and half of that again for importing it. `below` are the fields that
    may hold nodes.
    """

    below: tuple[str, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _NodeType:
        annotations: dict[str, str] = namespace.get("__annotations__", {})
        inherited: tuple[str, ...] = bases[0].__match_args__ if bases else ()  # type: ignore[attr-defined]
        above: tuple[str, ...] = bases[0].below if bases else ()  # type: ignore[attr-defined]
        fields = (*inherited, *annotations)
        namespace |= {"__slots__": (*annotations, *namespace.get("__slots__", ())), "__match_args__": fields}
        namespace["below"] = (*above, *(f for f, kind in annotations.items() if not kind.startswith(_PLAIN)))
        made = super().__new__(cls, name, bases, namespace)
        type.__setattr__(made, "__init__", _constructor([getattr(made, f).__set__ for f in fields]))
        return made


# Compared by identity: a structural comparison would recurse, and trees may be very deep.
class SyntaxNode(metaclass=_NodeType):
    """`__match_args__` names the fields, in the order of the constructor's arguments."""

    span: Span

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

    __slots__ = ("_everything",)

    source: str
    body: tuple[Statement, ...]


def positional(call: Call) -> tuple[Expression, ...]:
    """The positional arguments of a call, with the receiver of a method as the first."""
    return call.arguments if call.receiver is None else (call.receiver, *call.arguments)


def children(node: SyntaxNode) -> list[SyntaxNode]:
    """The direct child nodes, in the order of the text."""
    found: list[SyntaxNode] = []
    for field in type(node).below:
        value = getattr(node, field)
        if type(value) is tuple:
            found += value
        elif isinstance(value, SyntaxNode):
            found.append(value)
    return found


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """`node` and everything below it, in the order of the text, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current).below:
            stack += children(current)[::-1]


def everything(program: Module) -> Sequence[SyntaxNode]:
    """What `walk` gives of a program, which is asked for it again and again."""
    try:
        found: Sequence[SyntaxNode] = program._everything  # type: ignore[attr-defined]
    except AttributeError:
        found = [*walk(program)]
        object.__setattr__(program, "_everything", found)
    return found
