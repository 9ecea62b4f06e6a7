"""The node classes of the syntax tree, and functions to walk it. Nodes are frozen and have the span of their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gradcli.errors import Span
from gradcli.type_hints import Any, dataclass_transform
from gradcli.type_hints import Literal as OneOf

# Prefixes of annotations of fields that never hold nodes.
_PLAIN = ("Span", "str", "float", "bool", "OneOf", "tuple[OneOf")


def _constructor(slots: list[Callable[[Any, object], None]]) -> Callable[..., None]:
    """An `__init__` with positional fields that sets their slots. It is unrolled for each number of fields, as a long
    program calls it a million times and a loop would take four times as long."""

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

    def seven(self: Any, a: object, b: object, c: object, d: object, e: object, f: object, g: object) -> None:
        five(self, a, b, c, d, e)
        set_f(self, f)
        set_g(self, g)

    set_a, set_b, set_c, set_d, set_e, set_f, set_g = [*slots, *slots[:1] * 6][:7]
    return (one, two, three, four, five, six, seven)[len(slots) - 1]


@dataclass_transform(frozen_default=True, eq_default=False)
class _NodeType(type):
    """Makes frozen, slotted classes from annotations, as `dataclass` does.

    `dataclass` would add 10 ms to every start, plus half of that for its import. `below` are the fields that may hold
    nodes.
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
    """The base class of all nodes. `__match_args__` are the fields in the order of the constructor's arguments."""

    span: Span

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")


class Expression(SyntaxNode):
    pass


class Statement(SyntaxNode):
    pass


__all__ = ["Expression", "Statement", "SyntaxNode"]


class Number(Expression):
    """A number. `text` is its decimal form, which may have more digits than a float, or "" where `value` is exact."""

    value: float
    text: str


class Imaginary(Expression):
    """An imaginary number, as `2j`; `text` is the decimal form of the number before the `j`."""

    value: float
    text: str


class String(Expression):
    value: str


class Constant(Expression):
    """`True`, `False` or `None`."""

    value: bool | None


class Name(Expression):
    """A name; `module` is its library, such as `numpy` or `torch.nn.functional`, or "" without a prefix."""

    id: str
    module: str


class ImaginaryUnit(Name):
    """`i` directly after a number, as in `2i`: the imaginary unit, unless it has a value."""


class List(Expression):
    """`[a, b]`."""

    items: tuple[Expression, ...]


class Tuple(List):
    """`(a, b)`, or `a, b` without brackets: a list, except that `x[(a, b)]` is `x[a, b]`."""


class Unary(Expression):
    operator: OneOf["+", "-", "~", "not"]
    operand: Expression


class Binary(Expression):
    """A binary operation; `operator_span` is the span of the operator itself. `^` is stored as `**`."""

    operator: OneOf["+", "-", "*", "/", "//", "%", "@", "**", "&", "|"]
    operator_span: Span
    left: Expression
    right: Expression


class Factorial(Expression):
    """`operand!`."""

    operand: Expression


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

    A method call `x.name(a)` is stored with `receiver=x`. `module` is the library of the name, such as `numpy` or
    `torch.linalg`, or "" without a prefix; `name_span` is the span of the name itself.
    """

    name: str
    name_span: Span
    receiver: Expression | None
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]
    module: str


class Apply(Expression):
    """A call of an expression that is not a name, as in `grad(f)(x)`."""

    function: Expression
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


class BoundName(SyntaxNode):
    """A name that is assigned."""

    name: str


class TargetList(SyntaxNode):
    """`a, (b, c)`: nested targets, to which the parts of a value are assigned."""

    targets: tuple[SyntaxNode, ...]


class Assign(Statement):
    """`a = value`, `a, b = value`, `a[i] = value`, `a = b = value`: targets are `BoundName`, `TargetList` or `Index`."""

    targets: tuple[SyntaxNode, ...]
    value: Expression


class Augment(Statement):
    """`target += value`, where the target is a `Name` or an `Index`."""

    target: Expression
    operator: OneOf["+", "-", "*", "/", "//", "%", "@", "**"]
    operator_span: Span
    value: Expression


class Parameter(SyntaxNode):
    """A parameter of a function; `keyword_only` where it cannot be passed by position."""

    name: str
    default: Expression | None
    keyword_only: bool


class Backward(SyntaxNode):
    """`backward(cotangent) = a, b`: one expression per parameter of the function."""

    cotangent: BoundName
    gradients: tuple[Expression, ...]


class Block(SyntaxNode):
    """The statements of a function's body."""

    statements: tuple[Statement, ...]


class Define(Statement):
    """`f(a, b) = body`, with a hand-written derivative or without, or `def f(a, b): body`."""

    name: str
    name_span: Span
    parameters: tuple[Parameter, ...]
    body: Expression | Block
    backward: Backward | None


class Lambda(Expression):
    """`lambda a, b: body`."""

    parameters: tuple[Parameter, ...]
    body: Expression


class Return(Statement):
    value: Expression | None


class Break(Statement):
    pass


class Continue(Statement):
    pass


class Pass(Statement):
    pass


class Import(Statement):
    """`import numpy as np`; `libraries` are the top-level packages, separated by spaces."""

    libraries: str


class If(Statement):
    """An `if` statement; `elif` and `else if` are an `orelse` of a single `If`."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class For(Statement):
    """`for target in iterable`; the target is a `BoundName` or `TargetList`."""

    target: SyntaxNode
    iterable: Expression
    body: tuple[Statement, ...]


class While(Statement):
    test: Expression
    body: tuple[Statement, ...]


class Clause(SyntaxNode):
    """`for target in iterable if condition …` in a comprehension."""

    target: SyntaxNode
    iterable: Expression
    conditions: tuple[Expression, ...]


class Comprehension(Expression):
    """`[element for …]`, or `(element for …)`."""

    element: Expression
    clauses: tuple[Clause, ...]


class NoneTest(Expression):
    """`operand is None`, `operand is not None`."""

    operand: Expression
    negated: bool


class Input(Expression):
    """The input that is named like a parameter of the program's last function; `default` is that of the parameter."""

    id: str
    default: Expression | None


class Module(SyntaxNode):
    """A whole program and its source."""

    __slots__ = ("_everything", "_resolution", "_rewrites")

    source: str
    body: tuple[Statement, ...]


def positional(call: Call) -> tuple[Expression, ...]:
    """The positional arguments of a call, with the receiver of a method as the first."""
    return call.arguments if call.receiver is None else (call.receiver, *call.arguments)


def children(node: SyntaxNode) -> list[SyntaxNode]:
    """The direct child nodes, in the order of the source."""
    found: list[SyntaxNode] = []
    for field in type(node).below:
        value = getattr(node, field)
        if type(value) is tuple:
            found += value
        elif isinstance(value, SyntaxNode):
            found.append(value)
    return found


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """`node` and all nodes below it, in the order of the source, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        # The children from the last to the first, as in `children`; a call of that would double the time.
        for field in type(current).below[::-1]:
            value = getattr(current, field)
            if type(value) is tuple:
                stack += value[::-1]
            elif isinstance(value, SyntaxNode):
                stack.append(value)


def all_nodes(program: Module) -> Sequence[SyntaxNode]:
    """All nodes of a program in the order of `walk`, cached on the program."""
    try:
        found: Sequence[SyntaxNode] = program._everything  # type: ignore[attr-defined]
    except AttributeError:
        found = [*walk(program)]
        object.__setattr__(program, "_everything", found)
    return found
