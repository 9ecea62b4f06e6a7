"""Simplifies formulas with SymPy in a separate process, because its time and memory cannot be predicted."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from gradcli import arrays, install_command, subprocess_calls
from gradcli.errors import DifferentiationError, LimitError, ProgramSyntaxError, UsageError
from gradcli.formulas.simplification.numbers import closed_form
from gradcli.formulas.symbolic import parsed_formula
from gradcli.formulas.writing.documents import Formulas
from gradcli.formulas.writing.text_writer import UnsupportedPrimitiveError, operands_of
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.subprocess_calls import Limits

LIMITS = Limits(seconds=6.0, memory=2 * 2**30)

# A program as it is sent to the process, with the names of its primitives instead of the primitives, which hold
# functions and cannot be pickled.
_Sent = tuple[tuple[Variable, ...], list[Any], tuple[Atom, ...], tuple[Variable, ...]]


def simplified(formulas: Formulas) -> Formulas | None:
    """Return the formulas with their derivatives simplified by `sympy.simplify`; None where that exceeds `LIMITS`.

    Raises UsageError where SymPy is not installed, and DifferentiationError for a formula with tensors or with
    functions that SymPy lacks.
    """
    if find_spec("sympy") is None:
        raise UsageError(
            "--simplify needs SymPy, which is not installed",
            hint=f"{install_command.install_command('sympy')} installs it",
        )
    sent = [_by_name(program) for program in formulas.derivatives.values()]
    try:
        found = subprocess_calls.call(LIMITS, _in_process, sent, linear_algebra=False)
    except LimitError:
        return None
    return formulas._replace(derivatives=dict(zip(formulas.derivatives, map(_by_entry, found))))


def _in_process(sent: Sequence[_Sent]) -> list[_Sent]:
    programs = [_by_entry(program) for program in sent]
    try:
        return [_by_name(parsed_formula(sympy_simplified_text(program), like=program)) for program in programs]
    except (RecursionError, ProgramSyntaxError) as error:
        raise LimitError("what SymPy makes of the formula is too large") from error


def _by_name(program: Program) -> _Sent:
    for equation in program.equations:
        if "body" in equation.params:
            raise UnsupportedPrimitiveError(equation, "SymPy")
    equations = [(e.primitive.name, *e[1:]) for e in program.equations]
    return program.inputs, equations, program.outputs, program.guards


def _by_entry(sent: _Sent) -> Program:
    inputs, equations, outputs, guards = sent
    entries = {entry.name: entry for entry in table.entries() if isinstance(entry, Primitive)}
    return Program(inputs, tuple(Equation(entries[name], *rest) for name, *rest in equations), outputs, guards)


def sympy_simplified_text(program: Program) -> str:
    """A scalar program with one output, simplified by `sympy.simplify`, as text in the expression language.

    Raises DifferentiationError for a formula with tensors or with functions that SymPy lacks.
    """
    import sympy

    known: dict[Variable, Any] = {v: sympy.Symbol(v.name, real=True) for v in program.inputs}
    if any(v.shape for v in program.inputs):
        raise _unknown("a formula with tensors")
    for equation in program.equations:
        operands = operands_of(
            equation,
            lambda a: _atom(sympy, a, known),
            lambda a: sympy.Piecewise((1, _atom(sympy, a, known)), (0, True)),
            lambda a: sympy.Ne(_atom(sympy, a, known), 0),
        )
        known[equation.output] = _applied(sympy, equation, operands)
    (output,) = program.outputs
    found = sympy.simplify(_atom(sympy, output, known))
    if any(_is_decimal(a) for e in program.equations for a in (*e.inputs, *program.outputs)):
        found = _with_decimals(sympy, found)
    return _written(found)


def _is_decimal(atom: Atom) -> bool:
    """Return whether an atom is a non-integer number without pi, roots or logarithms; fractions in the text are
    divisions."""
    if isinstance(atom, Variable) or arrays.shape(atom) or not math.isfinite(atom):
        return False
    coefficient, pi, root, _, logarithm = closed_form(float(atom))
    return coefficient.denominator > 1 and pi == 0 and root == 1 and logarithm == 0


def _with_decimals(sympy: Any, expression: Any) -> Any:
    """An expression with fractions written as decimals, except in exponents and where no decimal is equal."""
    if expression.is_Rational and not expression.is_Integer:
        value = abs(float(expression))
        if sympy.Rational(repr(value)) != abs(expression):
            return expression
        return sympy.sign(expression) * sympy.Symbol(repr(value), positive=True)
    if expression.is_Pow and expression.exp.is_Rational:
        return _with_decimals(sympy, expression.base) ** expression.exp
    if not expression.args or not isinstance(expression, sympy.Expr):
        return expression
    return expression.func(*[_with_decimals(sympy, a) for a in expression.args])


def _unknown(what: str) -> DifferentiationError:
    return DifferentiationError(f"SymPy cannot simplify {what}", hint="leave out --simplify")


def _atom(sympy: Any, atom: Atom, known: dict[Variable, Any]) -> Any:
    if isinstance(atom, Variable):
        return known[atom]
    if arrays.shape(atom) or not math.isfinite(atom):
        raise _unknown("a formula with tensors" if arrays.shape(atom) else "nan and infinities")
    if arrays.dtype_name(atom) == "bool":
        return sympy.true if atom else sympy.false
    coefficient, pi, root, n, logarithm = closed_form(float(atom))
    number = sympy.Rational(coefficient.numerator, coefficient.denominator) * sympy.pi ** sympy.Rational(pi)
    return number * sympy.sqrt(root) * sympy.log(n) ** logarithm


def _applied(sympy: Any, equation: Equation, operands: list[Any]) -> Any:
    name = equation.primitive.name
    arithmetic = _arithmetic(sympy).get(name)
    if arithmetic is not None:
        return arithmetic(*operands, **equation.params)
    theirs = equation.primitive.spelling.get("sympy")
    if theirs is None or equation.params:
        raise _unknown(f"'{name}'")
    return getattr(sympy, theirs)(*operands)


@functools.cache
def _ours() -> dict[str, str]:
    """The names of the expression language's functions by their SymPy names."""
    return {e.spelling["sympy"]: e.name for e in table.entries() if isinstance(e, Primitive) and "sympy" in e.spelling}


@functools.cache
def _arithmetic(sympy: Any) -> dict[str, Any]:
    """Primitives as functions that build SymPy expressions."""
    return {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "negative": lambda x: -x,
        "cast": lambda x, dtype: x,
        "pow": lambda x, q: x**q,
        "whole_power": lambda x, n: x ** int(n),
        "where": lambda p, x, y: sympy.Piecewise((x, p), (y, True)),
        "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
        "expm1": lambda x: sympy.exp(x) - 1,
        "log1p": lambda x: sympy.log(1 + x),
        "hypot": lambda x, y: sympy.sqrt(x**2 + y**2),
        "polygamma": lambda x, n: sympy.polygamma(n, x),
    }


def _written(expression: Any) -> str:
    """An expression of SymPy in the expression language."""
    from sympy.printing.str import StrPrinter

    class Printer(StrPrinter):  # type: ignore[misc]
        def _print_Exp1(self, _expression: Any) -> str:
            return "exp(1)"

        def _print_Function(self, call: Any) -> str:
            name = type(call).__name__
            arguments = [self._print(a) for a in call.args]
            if name == "polygamma":
                return f"polygamma({', '.join(arguments)})"
            if name not in _ours():
                raise _unknown(f"this formula without '{name}'")
            return f"{_ours()[name]}({', '.join(arguments)})"

        def _print_LatticeOp(self, call: Any) -> str:
            name = _ours()[type(call).__name__]
            arguments: list[str] = [self._print(a) for a in call.args]
            return functools.reduce(lambda a, b: f"{name}({a}, {b})", arguments)

        def _print_Relational(self, call: Any) -> str:
            return f"({self._print(call.lhs)}) {call.rel_op} ({self._print(call.rhs)})"

        def _print_Not(self, call: Any) -> str:
            return f"logical_not({self._print(call.args[0])})"

        def _print_Piecewise(self, choice: Any) -> str:
            *choices, (last, _) = choice.args
            text = self._print(last)
            for value, condition in reversed(choices):
                text = f"where({self._print(condition)}, {self._print(value)}, {text})"
            return str(text)

    for name in ("And", "Or", "Max", "Min"):
        setattr(Printer, f"_print_{name}", Printer._print_LatticeOp)
    return str(Printer().doprint(expression))
