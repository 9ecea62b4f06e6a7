"""Products in which exponentials and modified Bessel functions of multiples of the variable cancel.

exp(-x)*I(0, x/3)**3 is the third power of the scaled function exp(-x/3)*I(0, x/3). Of the factors nothing is left where x
is large: in balls, neither the decay of the product nor its digits.
"""

from __future__ import annotations

from flint import fmpq

from gradcli.arrays.flint.balls import Balls, exact
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import divide, multiply, negative
from gradcli.primitives.entries.exponential import exp
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.entries.special_functions.bessel import iv, scaled_i
from gradcli.primitives.entries.special_functions.special import bessel_i
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code


class _Scaled(NamedTuple):
    """A value as exp(rate*x) times another."""

    rate: fmpq
    rest: Atom


def with_collected_exponentials(program: Program) -> Program:
    """The program with scaled functions in place of products whose exponentials cancel exactly; itself where there are
    none."""
    if not any(e.primitive in (iv, bessel_i) for e in program.equations):
        return program
    slopes: dict[Variable, fmpq] = {program.inputs[0]: fmpq(1)}
    scaled: dict[Variable, _Scaled] = {}
    equations = list[Equation]()
    for equation in program.equations:
        slope = _slope(equation, slopes)
        if slope is not None:
            slopes[equation.output] = slope
        rate = _rate(equation, slopes, scaled)
        if rate is None:
            equations.append(equation)
            continue
        if equation.primitive is exp:
            equations.append(equation)
            scaled[equation.output] = _Scaled(rate, 1.0)
        elif rate == 0:
            equations.append(_equation_of_rest(equation, scaled, equation.output))
        else:
            rest = Variable((), equation.output.dtype)
            equations += [equation, _equation_of_rest(equation, scaled, rest)]
            scaled[equation.output] = _Scaled(rate, rest)
    return without_dead_code(program._replace(equations=tuple(equations)))


def _fraction(atom: Atom) -> fmpq | None:
    """A constant that is an exact fraction."""
    if isinstance(atom, Variable) or not isinstance(atom, (Balls, float)):
        return None
    found = exact(atom.numbers if isinstance(atom, Balls) else atom)
    return found if isinstance(found, fmpq) else None


def _slope(equation: Equation, slopes: dict[Variable, fmpq]) -> fmpq | None:
    """The exact multiple of the variable that a result is."""
    known = [slopes.get(a) if isinstance(a, Variable) else None for a in equation.inputs]
    if equation.primitive is negative and known[0] is not None:
        return -known[0]
    if len(known) != 2 or equation.primitive not in (multiply, divide):
        return None
    constants = [*map(_fraction, equation.inputs)]
    if known[0] is not None and constants[1]:
        return known[0] * constants[1] if equation.primitive is multiply else known[0] / constants[1]
    if equation.primitive is multiply and known[1] is not None and constants[0]:
        return known[1] * constants[0]
    return None


def _rate(equation: Equation, slopes: dict[Variable, fmpq], scaled: dict[Variable, _Scaled]) -> fmpq | None:
    """The rate of the exponential in a result; None where that is not known."""
    primitive, inputs = equation.primitive, equation.inputs
    last = slopes.get(inputs[-1]) if isinstance(inputs[-1], Variable) else None
    if primitive is exp:
        return last
    if (primitive is iv and _fraction(inputs[0]) == 0) or (primitive is bessel_i and equation.params["n"] == 0):
        return last
    parts = [scaled.get(a) if isinstance(a, Variable) else None for a in inputs]
    rates = [fmpq(0) if part is None else part.rate for part in parts]
    if not any(parts):
        return None
    if primitive is multiply:
        return rates[0] + rates[1]
    if primitive is divide:
        return rates[0] - rates[1]
    return int(equation.params["n"]) * rates[0] if primitive is whole_power else None


def _equation_of_rest(equation: Equation, scaled: dict[Variable, _Scaled], output: Variable) -> Equation:
    primitive, inputs = equation.primitive, equation.inputs
    if primitive in (iv, bessel_i):
        return Equation(scaled_i, inputs[-1:], {"n": 0}, output)
    rests = (scaled[a].rest if isinstance(a, Variable) and a in scaled else a for a in inputs)
    return equation._replace(inputs=tuple(rests), output=output)
