"""The base classes of syntax tree nodes, and the metaclass that makes them frozen and slotted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, dataclass_transform

from gradcli.errors import Span

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
