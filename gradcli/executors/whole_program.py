"""Run programs that an array library compiles as a whole: XLA for JAX, Inductor for PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.backends import first_line
from gradcli.arrays.protocol import Compiler
from gradcli.errors import BackendError, EvaluationError, GradcliError
from gradcli.program.ir import Atom, Equation, Executable, Program, Variable, elements
from gradcli.timing import phase


def executable(program: Program, namespace: Compiler) -> Executable:
    """A function that runs `program` on arrays of a namespace with a compiler; see `WholeProgram.run`."""
    return WholeProgram(program, namespace).run


class WholeProgram:
    """A program on arrays of a namespace, compiled at its first run for inputs with these shapes and dtypes."""

    def __init__(self, program: Program, namespace: Compiler) -> None:
        self.namespace = namespace
        # A constant array becomes an operand: it is transferred once, and not embedded in the code.
        atoms = [*(a for e in program.equations for a in e.inputs), *program.outputs]
        found = {id(a): a for a in atoms if not isinstance(a, Variable) and arrays.shape(a)}
        self.constants = [namespace.asarray(a) for a in found.values()]
        self.function = _function(program, namespace, list(found))
        self.elements = elements(program.equations)
        self.compiled: Callable[..., Sequence[Any]] | None = None

    def run(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs for `inputs`, or None if a guard does not hold.

        Raises BackendError if the library cannot compile the program, EvaluationError for errors of the library at run
        time.
        """
        limits.charge(self.elements)
        operands = [*map(self.namespace.operand, inputs), *self.constants]
        with self.namespace.quiet():
            if self.compiled is None:
                self.compiled = self._compile(operands)
            try:
                *outputs, holds = self.compiled(*operands)
                return outputs if bool(holds) else None
            except (RuntimeError, ValueError) as error:
                raise self.namespace.explained(error) or EvaluationError(first_line(error)) from None

    @phase("compile")
    def _compile(self, operands: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        try:
            compiled: Callable[..., Sequence[Any]] = self.namespace.compiled(self.function, operands)
        except GradcliError:
            raise
        except Exception as error:
            # The compiler may raise any exception.
            raise self.namespace.explained(error) or BackendError(
                f"the backend {self.namespace.name} cannot compile this program: {first_line(error)}",
                hint=self.namespace.compiler_hint,
            ) from error
        return compiled


def _function(program: Program, namespace: Compiler, constants: Sequence[int]) -> Callable[..., list[Any]]:
    """A function that computes the outputs of `program`, followed by whether its guards hold.

    It takes the inputs and the constant arrays with the ids in `constants`.
    """

    def run(*operands: Any) -> list[Any]:
        known: dict[Any, Any] = dict(zip((*program.inputs, *constants), operands))

        def value(atom: Atom) -> Any:
            return known[atom] if isinstance(atom, Variable) else known.get(id(atom), atom)

        with namespace.assumptions() as assumed:
            for equation in program.equations:
                known[equation.output] = computed(equation, [value(a) for a in equation.inputs], namespace)
        outputs = [namespace.asarray(value(a)) for a in program.outputs]
        return [*outputs, _all([*(known[g] for g in program.guards), *assumed], namespace)]

    return run


def _all(conditions: Sequence[Any], namespace: Compiler) -> Any:
    """Return whether all elements of all conditions are true.

    Conditions of the same shape are combined first, to share one reduction.
    """
    together: dict[Any, Any] = {(): namespace.asarray(True)}
    for condition in conditions:
        shape = arrays.shape(condition)
        together[shape] = namespace.logical_and(together[shape], condition) if shape in together else condition
    return functools.reduce(namespace.logical_and, map(namespace.all, together.values()))


def computed(equation: Equation, operands: Sequence[Any], namespace: Any) -> Any:
    """The result of an equation for arrays of a namespace, in the dtype of its output."""
    primitive = equation.primitive
    operands = namespace.promoted(operands, truths=primitive.truths)
    result = primitive.forward(namespace, *operands, **equation.params)
    dtype = equation.output.dtype
    return result if namespace.dtype_name(result) == dtype else namespace.astype(result, dtype)
