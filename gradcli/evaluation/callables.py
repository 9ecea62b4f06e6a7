"""Wraps a Python function of tensors as a computation that can be evaluated and recorded like a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import refusing_to_leave_the_graph
from gradcli.autograd.node import next_sequence
from gradcli.autograd.targets import reaches_earlier
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, GradcliError, NotRecordableError
from gradcli.evaluation import python_values
from gradcli.language.syntax import tree
from gradcli.nn.module import Module
from gradcli.primitives.bind import primal_and_tangents

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NAMED_BY = "an input is named after its argument: lambda x, y: f(x, y)"


class PythonFunction:
    """A Python function of tensors, whose inputs are its arguments.

    `positional` are the arguments that may be given by position, in order; `required` are those without a default.
    Raises CallError for a function whose arguments have no names.
    """

    # A program has its source text here; a function has none.
    source = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        try:
            # Calling a module passes its arguments to `forward`, so its signature is that of `forward`.
            described = function.forward if isinstance(function, Module) else function
            parameters = [*inspect.signature(described).parameters.values()]
        except (TypeError, ValueError):
            raise CallError(f"{self.name} does not say what its arguments are called", hint=_NAMED_BY) from None
        if any(p.kind not in _NAMED for p in parameters):
            raise CallError(f"{self.name} takes any number of arguments, which have no names", hint=_NAMED_BY)
        self.inputs = tuple(p.name for p in parameters)
        self.positional = tuple(p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY)
        self.required = tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)

    def called(self, values: Mapping[str, Any]) -> Any:
        """Call the function with arguments by name; positional-only arguments are passed by position."""
        first = [*takewhile(values.__contains__, self.positional)]
        return self.function(*[values[n] for n in first], **{n: v for n, v in values.items() if n not in first})

    def value(self, bindings: Mapping[str, Any]) -> Any:
        """Return the value, a number or a Tensor, for arrays (or kinds that wrap arrays) by name.

        Raises CallError where the function returns anything else.
        """
        returned = self.returned(bindings)
        if isinstance(returned, Tensor):
            return returned
        if not isinstance(returned, (float, int)) and not arrays.is_array(returned):
            raise CallError(f"a compiled function returns one tensor, and {self.name} returns {_described(returned)}")
        return python_values.value(returned)

    def returned(self, bindings: Mapping[str, Any]) -> Any:
        """Return what the function returns for arrays (or kinds that wrap arrays) by name, which it gets as tensors."""
        # Forward mode: numbers that are read out of the graph would still depend on the inputs, so reading them is
        # refused.
        carries = any(len(primal_and_tangents(v)) > 1 for v in bindings.values())
        with arrays.quiet(), refusing_to_leave_the_graph() if carries else nullcontext():
            given = {name: _as_tensor(v) for name, v in bindings.items()}
            return self.called(given)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within the block, turn an exception of the function into NotRecordableError: a plain call may succeed where
        recording fails."""
        try:
            yield
        except (GradcliError, MemoryError):
            raise
        except Exception as error:
            raise NotRecordableError(f"{self.name} cannot be recorded: {type(error).__name__}: {error}") from error

    def recordable_value(self, bindings: Mapping[str, Any]) -> Any:
        """Return the value as `value` does.

        Raises NotRecordableError where it depends on tensors from outside that require grad, because those may change
        between calls.
        """
        began = next_sequence()
        value = self.value(bindings)
        if reaches_earlier([value], began, bindings.values()):
            raise NotRecordableError("what is computed here depends on a tensor from outside that requires grad")
        return value


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    made = Tensor(value)
    # A value with a tangent is marked as a leaf, as it would be in reverse mode.
    return made.requires_grad_() if len(primal_and_tangents(value)) > 1 else made


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


# Everything that can be recorded: a parsed program or a Python function.
Computation = tree.Module | PythonFunction
