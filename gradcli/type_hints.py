"""The names of `typing`, without importing it, which would take a twentieth of a short run.

Annotations are not evaluated. What is evaluated of them, aliases of types and the bases of classes, needs no more than
the stand-in below; type checkers read `typing` itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Annotated as Annotated
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import ClassVar as ClassVar
    from typing import Generic as Generic
    from typing import Literal as Literal
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import Self as Self
    from typing import TextIO as TextIO
    from typing import TypeAlias as TypeAlias
    from typing import TypeVar as TypeVar
    from typing import cast as cast
    from typing import dataclass_transform as dataclass_transform
    from typing import final as final
else:

    class _Hint:
        """Any type. Subscripted, it is itself."""

        def __class_getitem__(cls, _arguments):
            return cls

    Any = BinaryIO = ClassVar = Generic = IO = Literal = NoReturn = Protocol = Self = TextIO = TypeAlias = _Hint

    class Annotated:
        """A type with what is declared of it, as `typing.Annotated` has them."""

        __slots__ = ("__metadata__", "__origin__")

        def __class_getitem__(cls, declared):
            made = cls()
            made.__origin__, *metadata = declared
            made.__metadata__ = tuple(metadata)
            return made

    def TypeVar(_name, *_constraints, **_options):
        return _Hint

    def cast(_kind, value):
        return value

    def dataclass_transform(**_options):
        return final

    def final(decorated):
        return decorated
