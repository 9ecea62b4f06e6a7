"""Compiled functions of Python's: what `CompiledProgram` is of a text, of a function of tensors."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradcli.autograd.ancestors import reaches_earlier
from gradcli.autograd.node import next_sequence
from gradcli.errors import BindingError, CallError, did_you_mean
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.run import converted
from gradcli.run.callables import PythonFunction
from gradcli.run.compiled import Compiled


class CompiledFunction(Compiled):
    """A function of tensors, whose inputs are its arguments, by their names or by position.

    It is given tensors, whatever it is called with, and returns one; an argument that has a default, and is not
    given, is what that is. When it is called again with inputs of the same shapes and dtypes, a recording of it runs.
    So it has to be pure: what it reads from outside, other than tensors that require grad, is what it was when it was
    recorded, and what it prints or changes outside is done then alone. Where its course depends on the numbers, by
    `if` and `while`, a few courses are recorded, each for the numbers that take it; where it reads the numbers
    themselves, as with `item()`, `numpy()` or `float()`, it is called each time. Where an input is a tensor, it is
    called with that, and the result has its graph; so it has where a tensor from outside requires grad.
    """

    def __init__(
        self, function: Callable[..., Any], max_steps: int = MAX_STEPS, max_elements: int = MAX_ELEMENTS
    ) -> None:
        self.function = PythonFunction(function)
        inputs = self.function.inputs
        super().__init__(self.function, inputs, inputs, max_steps, max_elements)
        functools.update_wrapper(self, function, updated=())

    def __reduce__(self) -> str | tuple[Any, ...]:
        """How it is copied and pickled: by its name where it has taken the place of its function, as a decorator does; else
        as that and its limits."""
        function = self.__wrapped__  # type: ignore[attr-defined]
        place: Any = sys.modules.get(getattr(function, "__module__", ""))
        name = getattr(function, "__qualname__", "")
        if getattr(place, name, None) is self:
            return str(name)
        return type(self), (function, *self._limits)

    def __repr__(self) -> str:
        return f"<compiled function {self.function.name}>"

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        """The value, its inputs given by position or by name."""
        return self._called(self._by_name(arguments, values) if arguments else values)

    def _eager_value(self, bindings: Mapping[str, Any]) -> Any:
        began = next_sequence()
        value = self._run(bindings)
        # Tensors from outside that it reads are inputs as well.
        return value if reaches_earlier([value], began) else converted.plain(value, bindings)

    def _of_tensors(self, values: Mapping[str, Any]) -> Any:
        # As without being compiled: they may be rows, or series, or what is being recorded.
        self._expect_known(values)
        return self._evaluated({name: converted.value(v) for name, v in values.items()})

    def _by_name(self, arguments: Sequence[Any], values: Mapping[str, Any]) -> dict[str, Any]:
        names = self.function.positional
        if len(arguments) > len(names):
            raise CallError(
                f"{len(arguments)} values are given by position to a function of {', '.join(names) or 'none'}"
            )
        given = dict(zip(names, arguments))
        for name, value in values.items():
            if name in given:
                raise CallError(f"'{name}' is given twice, by its name and by position")
            given[name] = value
        return given

    def _evaluated(self, bindings: Mapping[str, Any]) -> Any:
        self._expect_all(bindings)
        return self.function.value(bindings)

    def _unknown(self, name: str) -> BindingError:
        hint = did_you_mean(name, self._accepted, f"its arguments are {', '.join(self.inputs) or 'none'}")
        return BindingError(f"the function has no argument '{name}'", hint=hint)

    def _expect_all(self, names: Collection[str]) -> None:
        for name in self.function.required:
            if name not in names:
                raise BindingError(f"the function needs '{name}', which is not among the inputs")
