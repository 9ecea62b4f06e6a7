"""Compiled Python functions of tensors, the counterpart of `CompiledProgram` for source text."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradcli.autograd.node import next_sequence
from gradcli.autograd.targets import reaches_earlier
from gradcli.compiled.computation import Compiled
from gradcli.errors import BindingError, CallError, did_you_mean
from gradcli.evaluation import python_values
from gradcli.evaluation.callables import PythonFunction
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS


class CompiledFunction(Compiled):
    """A compiled Python function of tensors; its inputs are its arguments, by name or by position.

    The function receives tensors, whatever it is called with, and returns one tensor. Further calls with inputs of the
    same shapes and dtypes run a recording. The function must therefore be pure: values that it reads from outside,
    other than tensors that require grad, are those at the time of recording, and side effects happen only then. Where
    `if` and `while` depend on the numbers, a few execution paths are recorded, each for the inputs that take it. A
    function that reads the numbers themselves, with `item()`, `numpy()` or `float()`, is called each time. With a
    tensor as input, or a tensor from outside that requires grad, the function is called as it is and the result has a
    graph; it may then return anything.
    """

    def __init__(
        self, function: Callable[..., Any], max_steps: int = MAX_STEPS, max_elements: int = MAX_ELEMENTS
    ) -> None:
        self.function = PythonFunction(function)
        inputs = self.function.inputs
        super().__init__(self.function, inputs, inputs, max_steps, max_elements)
        functools.update_wrapper(self, function, updated=())

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copy and pickle by qualified name where the object has replaced its function, as a decorator does; else by
        the function and its limits."""
        function = self.__wrapped__
        place: Any = sys.modules.get(getattr(function, "__module__", ""))
        name = getattr(function, "__qualname__", "")
        if getattr(place, name, None) is self:
            return str(name)
        return type(self), (function, *self._limits)

    def __getattr__(self, name: str) -> Any:
        """Other attributes are those of the function, such as the parameters of a module."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<compiled function {self.function.name}>"

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        """Return the value for inputs by position or by name."""
        return self._called(self._by_name(arguments, values) if arguments else values)

    def _eager_value(self, bindings: Mapping[str, Any]) -> Any:
        began = next_sequence()
        value = self._run(bindings)
        # The value keeps its graph where it depends on tensors from outside.
        return value if reaches_earlier([value], began) else python_values.plain(value, bindings)

    def _of_tensors(self, values: Mapping[str, Any]) -> Any:
        # Pass the values unconverted: they may be batched, Taylor series or tracers.
        self._expect_known(values)
        self._expect_all(values)
        return self.function.returned({name: python_values.value(v) for name, v in values.items()})

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
