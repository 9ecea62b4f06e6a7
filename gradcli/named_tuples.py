"""Named tuples for the modules that every command imports.

`typing.NamedTuple` also compiles the annotation of each field, for checks that a type checker makes anyway: for 40 classes
that was a twentieth of the start of `gradcli eval`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _NamedTupleType(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = namespace["__annotations__"]
            made = namedtuple(name, fields, defaults=[namespace.pop(field) for field in fields if field in namespace])
            for member, value in namespace.items():
                setattr(made, member, value)
            return made

    class NamedTuple(metaclass=_NamedTupleType):
        """The base of a class with a field for each annotation, as `typing.NamedTuple` is."""
