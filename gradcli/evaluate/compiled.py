"""A program as a Python callable: parsed once, run many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import BindingError, DifferentiationError, nearest, pointing_into
from gradcli.evaluate import scope
from gradcli.evaluate.interpreter import Evaluation, evaluate
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand
from gradcli.syntax import parse
from gradcli.syntax.tree import Program


def compile(program: str) -> CompiledProgram:
    """Parse `program`. Raises ProgramSyntaxError, with the place, where it is none."""
    return CompiledProgram(parse(program))


class CompiledProgram:
    """A parsed program.

    Its inputs are Python numbers, arrays, nested lists or Tensors; results come back as numbers
    and arrays, or as Tensors, with their graph, where an input is a Tensor.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        reads = scope.outer_reads(program).values()
        # A constant such as `pi` is an input only where a value is given for it.
        self.inputs = tuple(r.name for r in reads if r.name not in scope.CONSTANTS and not r.maybe_assigned)
        self._accepted = frozenset(r.name for r in reads)

    def __repr__(self) -> str:
        return f"<program {self.program.source!r}>"

    def __call__(self, /, **values: Any) -> Any:
        """The value of the program, its inputs given by name."""
        bindings = self._bindings(values)
        value = self._run(bindings).value
        return value if any(isinstance(v, Tensor) for v in values.values()) else _plain(value, bindings)

    def value_and_grad(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None = None, grad_output: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """The value, and its gradient by each name in `wrt` (all inputs, where that is None).

        `grad_output` is the cotangent of a value that is no scalar. A gradient is None where the
        value does not depend on the input. Raises DifferentiationError for a value that is no
        scalar without `grad_output`.
        """
        leaves, value = self._differentiable(values, wrt)
        with pointing_into(self.program.source):
            found = gradients(value, list(leaves.values()), grad_output, retain_graph=False)
        return _plain(value, leaves), {name: _plain(g, leaves) for name, g in zip(leaves, found)}

    def jacobian(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> dict[str, Any]:
        """The Jacobian by each input, of shape value.shape + input.shape; None as in `value_and_grad`."""
        leaves, value = self._differentiable(values, wrt)
        with pointing_into(self.program.source):
            found = jacobians(value, list(leaves.values()))
        return {name: _plain(j, leaves) for name, j in zip(leaves, found)}

    def hessian(self, values: Mapping[str, Any], wrt: Sequence[str] | None = None) -> dict[str, Any]:
        """The second derivatives of a scalar value, keyed `"x,x"`, `"x,q"`, …; each mixed one once.

        Their shape is the shapes of both inputs joined; None where the value does not depend on
        an input. Raises DifferentiationError for a value that is no scalar.
        """
        _, found = self._all_derivatives(values, wrt, 2)
        return {key: d for key, d in found.items() if "," in key}

    def derivatives(self, values: Mapping[str, Any], order: int, wrt: Sequence[str] | None = None) -> Any:
        """All derivatives of a scalar value up to `order`.

        With one scalar input the list [f, f', f'', …]; else a dict keyed by inputs joined with
        commas. Raises DifferentiationError for a value that is no scalar.
        """
        if order < 0:
            raise DifferentiationError("the order of a derivative must not be negative")
        value, found = self._all_derivatives(values, wrt, order)
        names = self._names(values, wrt)
        if len(names) == 1 and not arrays.shape(operand(values[names[0]])):
            return [value, *(0.0 if d is None else d for d in found.values())]
        return found

    def _all_derivatives(
        self, values: Mapping[str, Any], wrt: Sequence[str] | None, order: int
    ) -> tuple[Any, dict[str, Any]]:
        names, bindings = self._names(values, wrt), self._bindings(values)
        leaves = {n: concrete(bindings[n]) for n in names}
        with enable_grad(), pointing_into(self.program.source):
            value, found = derivatives(lambda given: self._run({**bindings, **given}).value, leaves, order)
        return _plain(value, bindings), {key: _plain(d, bindings) for key, d in found.items()}

    def _differentiable(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[dict[str, Tensor], Any]:
        """The leaves to differentiate by, and the value with its graph."""
        names, bindings = self._names(values, wrt), self._bindings(values)
        leaves = {n: _leaf(bindings[n]) for n in names}
        with enable_grad():
            return leaves, self._run({**bindings, **leaves}).value

    def _names(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> list[str]:
        """The inputs to differentiate by, all of them where `wrt` is None."""
        names = [n for n in values if n in self._accepted] if wrt is None else list(wrt)
        missing = [n for n in names if n not in values]
        if missing:
            raise BindingError(f"cannot differentiate by '{missing[0]}', which has no value")
        return names

    def _run(self, bindings: Mapping[str, Any]) -> Evaluation:
        with arrays.using_dtype(_dtype(bindings)):
            return evaluate(self.program, bindings)

    def _bindings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        for name in values:
            if name not in self._accepted:
                close = nearest(name, self._accepted)
                hint = f"did you mean '{close}'?" if close else f"it reads {', '.join(self.inputs) or 'no names'}"
                raise BindingError(f"the program does not read '{name}'", hint=hint)
        return {name: _input(value) for name, value in values.items()}


def _input(value: Any) -> Any:
    """A number, array, list or Tensor as a value of the language, where all numbers are floats."""
    if isinstance(value, Tensor):
        return value
    array = operand(value)
    return array if arrays.is_floating(array) else arrays.astype(array, "float64")


def _dtype(bindings: Mapping[str, Any]) -> str:
    """float32 where every array is; a number alone has no say."""
    given = {arrays.dtype_name(concrete(b)) for b in bindings.values() if type(concrete(b)) is not float}
    return "float32" if given == {"float32"} else "float64"


def _leaf(value: Any) -> Tensor:
    return Tensor(value.data if isinstance(value, Tensor) else value).requires_grad_()


def _plain(value: Any, inputs: Mapping[str, Any]) -> Any:
    """A result as a number, or an array apart from the `inputs`; truth values as 0 and 1."""
    array = concrete(value)
    if array is None or arrays.is_floating(array):
        return arrays.unshared(array, map(concrete, inputs.values()))
    return arrays.astype(array, "float64")
