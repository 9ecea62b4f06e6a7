"""Formulas with complex numbers.

While derivatives are recorded and simplified, the imaginary unit is an input, of which the algebra knows that its square
is -1: the rules of analytic functions hold for it as for any number. The formulas are then compared with derivatives of
the program at several points, because simplification knows rules that hold for real numbers alone.
"""

from __future__ import annotations

import cmath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import check_holomorphic, complex_derivatives, higher_complex_derivatives
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import DifferentiationError, GradcliError
from gradcli.executors import stepwise
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.language.syntax import tree
from gradcli.primitives.bind import concrete
from gradcli.program.ir import Element, Program, Variable

if TYPE_CHECKING:
    from gradcli.formulas.writing.text_writer import Language
    from gradcli.primitives.primitive import Primitive

# Scales of the points at which formulas are compared with the program, irregular and of both signs; and the factor of
# complex inputs.
_SCALES = (0.61, -1.37, 2.93, -7.19, 12.31)
_STEP, _DIRECTION = 0.173, 1.0 + 0.63j
# The languages with code, and the functions that are spelled there in functions of real numbers.
_WITH_CODE = frozenset({"python", "c"})
_CODE_OF_REAL = frozenset(
    ["sinpi", "cospi", "sigmoid", "logsigmoid", "softplus", "logaddexp", "tanhshrink", "lgamma", "digamma", "polygamma"]
)
# Relative difference that rounding may cause.
_TOLERANCE = 1e-8


def with_unit(program: Program) -> Program:
    """A program with the number 1j in place of the input that stands for it."""
    unit = next((v for v in program.inputs if v.name == IMAGINARY_UNIT), None)
    if unit is None:
        return program
    equations = [e._replace(inputs=tuple(1j if a is unit else a for a in e.inputs)) for e in program.equations]
    outputs = tuple(1j if a is unit else a for a in program.outputs)
    inputs = tuple(v for v in program.inputs if v is not unit)
    return program._replace(inputs=inputs, equations=tuple(equations), outputs=outputs)


def check_analytic(value: Program, complex_names: Collection[str]) -> None:
    """Raise DifferentiationError where an operation on complex numbers is not analytic, or takes elements."""
    if any(isinstance(v, Element) or v.shape for v in value.inputs):
        raise DifferentiationError(
            "formulas with complex numbers are those of numbers, and this is one of tensors",
            hint="gradcli eval computes the derivatives at a point",
        )
    for primitive in _of_complex(value, complex_names):
        if primitive.numbers != "analytic":
            raise DifferentiationError(
                f"there is no formula for the derivative of '{primitive.called}' of complex numbers",
                hint="gradcli eval computes it at a point",
            )


def check_code(programs: Iterable[Program], complex_names: Collection[str], language: Language | None) -> None:
    """Raise DifferentiationError where a language has no complex numbers, or where its code of an operation on them is that
    of real ones alone."""
    if language is not None and complex_names:
        language.check_complex()
    if language is None or language.name not in _WITH_CODE:
        return
    for primitive in (p for program in programs for p in _of_complex(program, complex_names)):
        if primitive.name in _CODE_OF_REAL:
            raise DifferentiationError(
                f"'{primitive.called}' of complex numbers cannot be written as {language.name}",
                hint="--to text and --to latex have it",
            )


def _of_complex(program: Program, complex_names: Collection[str]) -> Iterator[Primitive]:
    """The primitives of a program whose operands depend on the imaginary unit or on inputs that are complex."""
    dependent: set[Variable] = {v for v in program.inputs if v.name == IMAGINARY_UNIT or v.name in complex_names}
    for equation in program.equations:
        if any(isinstance(a, Variable) and a in dependent for a in equation.inputs):
            yield equation.primitive
            dependent.add(equation.output)


def check_at_points(
    program: tree.Module,
    bindings: Mapping[str, Any],
    programs: Mapping[str, Program],
    names: Sequence[str],
    order: int,
) -> None:
    """Compare programs, by the names that they are the derivatives by ("" for the value), with the derivatives of the
    program at several points. Raises DifferentiationError where they differ, and where there is no point to compare
    at."""
    compared = 0
    read = [v.name or "" for v in next(iter(programs.values())).inputs if v.name != IMAGINARY_UNIT]
    for scale in _SCALES:
        point = {name: bindings[name] for name in bindings if name not in names}
        point |= {name: _at(scale, i, bindings.get(name)) for i, name in enumerate(read) if name not in point}
        with arrays.quiet():
            try:
                known = _derivatives(program, point, names, order)
            except GradcliError:
                if scale is _SCALES[-1] and not compared:
                    raise
                continue
            for key, formula in programs.items():
                wanted, found = known.get(key), _evaluated(with_unit(formula), point)
                if wanted is None or found is None or not cmath.isfinite(wanted):
                    continue
                compared += 1
                # A formula is nan where it has a real number, such as sqrt(-2), in place of a complex one.
                if not abs(found - wanted) <= _TOLERANCE * max(abs(wanted), 1e-3):
                    raise DifferentiationError(
                        "there is no formula of these complex numbers that is known to hold everywhere",
                        hint="gradcli eval computes the derivatives at a point",
                    )
    if not compared:
        raise DifferentiationError(
            "the formulas of these complex numbers cannot be compared with the program",
            hint="gradcli eval computes the derivatives at a point",
        )


def _at(scale: float, i: int, given: Any) -> Any:
    number = scale * (1.0 + _STEP * i)
    return number * _DIRECTION if given is not None and arrays.is_complex(given) else number


def _derivatives(program: tree.Module, point: Mapping[str, Any], names: Sequence[str], order: int) -> Mapping[str, Any]:
    """The value (by "") and the derivatives of `order` at a point."""

    def function(given: Mapping[str, Any]) -> Any:
        return evaluate(program, {**point, **given}, rewrite=False).value

    with enable_grad():
        leaves = {name: Tensor(point[name]).requires_grad_() for name in names if name in point}
        value = function(leaves)
        found: dict[str, Any] = {"": concrete(value)}
        inputs = {name: point[name] for name in leaves}
        if arrays.is_complex(value):
            check_holomorphic(value, [*leaves.values()])
            if order == 1:
                found |= complex_derivatives(value, leaves, gradients)
            else:
                found |= higher_complex_derivatives(function, inputs, order)
        elif order == 1:
            found |= zip(leaves, gradients(value, [*leaves.values()]))
        else:
            found |= derivatives(function, inputs, order)[1]
    return {key: 0.0 if d is None else concrete(d) for key, d in found.items()}


def _evaluated(program: Program, point: Mapping[str, Any]) -> Any:
    """The number that a program of numbers gives at a point; None where a step of it is infinite."""
    known: dict[Variable, Any] = {v: point[v.name or ""] for v in program.inputs}
    known |= {equation.output: result for equation, _, result in stepwise.steps(program, [*known.values()])}
    if any(map(cmath.isinf, known.values())):
        return None
    (output,) = program.outputs[:1]
    return known[output] if isinstance(output, Variable) else output
