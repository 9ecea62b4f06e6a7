"""Compiled programs whose time or memory is limited: each use runs in a separate process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter, warn

from gradcli import arrays, limits, subprocess_calls
from gradcli.autograd.tensor import Tensor
from gradcli.compiled.programs import CompiledProgram, parsed
from gradcli.errors import AccuracyWarning, BindingError, RowWarning, UsageError
from gradcli.evaluation.python_values import names_tuple
from gradcli.language.parsing import parse_charged
from gradcli.primitives.operators import operand

if TYPE_CHECKING:
    from gradcli.compiled.evaluated import Evaluated
    from gradcli.proofs.certify import Certified
    from gradcli.proofs.enclosed import Enclosure


class ConfinedProgram(CompiledProgram):
    """A parsed program, each use of which runs in a process of its own; raises LimitError where that process is
    ended."""

    def __init__(self, program: str, max_steps: int, max_elements: int, process: subprocess_calls.Limits) -> None:
        self._process = process
        self._compile = partial(parsed, program, max_steps, max_elements)
        # Source text that the limited process can parse is safe to parse here.
        self.apart(_compiled, self._compile)
        with limits.within(max_steps, max_elements):
            super().__init__(parse_charged(program), max_steps, max_elements)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.program.source, *self._limits, self._process)

    def apart(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a module-level function in a separate process and return its result. Arguments must be picklable."""
        return subprocess_calls.call(self._process, function, *arguments)

    def picklable_inputs(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the inputs in a form that can be sent to the process, and the names to differentiate by.

        Raises BindingError for inputs that cannot be sent.
        """
        bindings, names = self._leaves(values, wrt)
        return {name: _sent(value) for name, value in bindings.items()}, names

    def __call__(self, /, **values: Any) -> Any:
        return self.apart(_called, self._compile, self.picklable_inputs(values)[0])

    def value_and_grad(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        grad_output: Any = None,
        *,
        rows: bool | Sequence[str] = False,
    ) -> tuple[Any, dict[str, Any]]:
        cotangent = None if grad_output is None else _sent(operand(grad_output))
        found: tuple[Any, dict[str, Any]] = self._asked("value_and_grad", values, wrt, grad_output=cotangent, rows=rows)
        return found

    def jacobian(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self._asked("jacobian", values, wrt)
        return found

    def hessian(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, *, sparse: bool = False
    ) -> dict[str, Any]:
        found: dict[str, Any] = self._asked("hessian", values, wrt, sparse=sparse)
        return found

    def derivatives(self, values: Mapping[str, Any], order: int, wrt: Sequence[str] | None = None) -> Any:
        return self._asked("derivatives", values, wrt, order=order)

    def certify(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, **further: Any) -> Certified:
        found: Certified = self._asked("certify", values, wrt, **further)
        return found

    def evaluate(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, **options: Any) -> Evaluated:
        if options.get("balls"):
            raise UsageError("balls cannot be sent from the process of the program", hint="leave out balls=True")
        found: Evaluated = self.apart(_evaluated, self._compile, dict(values), wrt, options)
        return found

    def enclose(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, **options: Any) -> Enclosure:
        found: Enclosure = self.apart(_enclosed, self._compile, dict(values), wrt, options)
        return found

    def map(self, table: Any, /, **options: Any) -> Any:
        found, warnings = self.apart(_mapped, self._compile, table, options)
        for text in warnings:
            warn(text, RowWarning, stacklevel=2)
        return found

    def _asked(self, method: str, values: Mapping[str, Any], wrt: Sequence[str] | None, **further: Any) -> Any:
        bindings, names = self.picklable_inputs(values, wrt)
        found, warnings = self.apart(_asked, self._compile, method, bindings, {"wrt": names, **further})
        for text in warnings:
            # stacklevel 3 is the caller of the public method.
            warn(text, AccuracyWarning, stacklevel=3)
        return found

    def compiled(self, names: Sequence[str], wrt: Sequence[str] | None = None) -> Callable[..., Any]:
        """Like the method of other programs, except that each call of the function runs in a process of its own."""
        names = names_tuple(names)
        leaves = names if wrt is None else names_tuple(wrt)
        called = self._by_position(names, leaves)
        self.apart(_compiled, self._compile, names, leaves)
        return called


def _sent(value: Any) -> Any:
    if isinstance(value, Tensor):
        raise BindingError("a tensor cannot be sent to the process of the program", hint="give its numbers: x.numpy()")
    if arrays.foreign_namespace((value,)) is not None:
        raise BindingError(
            "an array of this library cannot be sent to the process of the program", hint="give one of NumPy"
        )
    return value


# The functions below run in the separate process.


def _compiled(compile: Callable[[], CompiledProgram], *names: Sequence[str]) -> None:
    program = compile()
    if names:
        program.compiled(*names)


def _called(compile: Callable[[], CompiledProgram], values: Mapping[str, Any]) -> Any:
    return compile()(**values)


def _evaluated(
    compile: Callable[[], CompiledProgram],
    values: Mapping[str, Any],
    wrt: Sequence[str] | None,
    options: Mapping[str, Any],
) -> Evaluated:
    return compile().evaluate(values, wrt, **options)


def _asked(
    compile: Callable[[], CompiledProgram], method: str, values: Mapping[str, Any], further: Mapping[str, Any]
) -> tuple[Any, Sequence[str]]:
    """Call a method of the program; return its result and the texts of its accuracy warnings."""
    with catch_warnings(record=True) as seen:
        simplefilter("always")
        found = getattr(compile(), method)(values, **further)
    return found, [str(w.message) for w in seen if issubclass(w.category, AccuracyWarning)]


def _mapped(
    compile: Callable[[], CompiledProgram], table: Any, options: Mapping[str, Any]
) -> tuple[Any, Sequence[str]]:
    with catch_warnings(record=True) as seen:
        simplefilter("always")
        found = compile().map(table, **options)
    return found, [str(w.message) for w in seen if issubclass(w.category, RowWarning)]


def _enclosed(
    compile: Callable[[], CompiledProgram], values: Mapping[str, Any], wrt: Sequence[str] | None, options: Any
) -> Enclosure:
    return compile().enclose(values, wrt, **options)
