"""The base class of all named tuples, which takes a seventh of the time of `typing.NamedTuple` to make a class.

`typing.NamedTuple` compiles the annotation of each field, for checks that a type checker makes anyway, and the
constructor of each class. Here classes with equally many fields share one compiled constructor. A command makes 40 of
them at its start, or 100.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple
    from functools import cache
    from types import FunctionType

    @cache
    def _model(size):
        """A named tuple with so many fields. What does not depend on their names is shared by all of this size."""
        return namedtuple("Model", [f"field{index}" for index in range(size)])

    def _constructor(model, name, fields, defaults):
        """The constructor of a model with the names of other fields for its parameters."""
        code = model.__new__.__code__.replace(co_varnames=("_cls", *fields), co_qualname=f"{name}.__new__")
        return FunctionType(code, model.__new__.__globals__, "__new__", defaults)

    def _replace(self, /, **values):
        made = self._make(map(values.pop, self._fields, self))
        if values:
            raise ValueError(f"Got unexpected field names: {list(values)!r}")
        return made

    def _repr(self):
        return f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in zip(self._fields, self))})"

    class _NamedTupleType(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace["__annotations__"])
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            model = _model(len(fields))
            made = {
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
                "__new__": _constructor(model, name, fields, tuple(defaults.values())),
                "__repr__": _repr,
                "__getnewargs__": model.__getnewargs__,
                "_make": vars(model)["_make"],
                "_asdict": model._asdict,
                "_replace": _replace,
            }
            made.update(zip(fields, (getattr(model, field) for field in model._fields)))
            return type(name, (tuple,), made | namespace)

    class NamedTuple(metaclass=_NamedTupleType):
        """The base of a class with a field for each annotation, as `typing.NamedTuple` is."""
