"""Complex programs as functions of their inputs and of the conjugates of these, as of independent variables.

Every value w of a program is computed together with its conjugate. The conjugate of f(w) is f(conj(w)) for all
functions that are real on a part of the real axis and analytic (Schwarz's reflection principle), on both sides of
their branch cuts; so conjugates move to the inputs. Then real(w) is (w + conj(w))/2, imag(w) is (w - conj(w))/(2i),
angle(w) is (log(w) - log(conj(w)))/(2i), and the square of abs(w) is w*conj(w). All operations that are left are analytic,
and their derivatives by an input and by its conjugate are Wirtinger's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import DifferentiationError
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.primitives.entries.complex_parts import conjugate, from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import phase
from gradcli.primitives.entries.exponential import exp, log
from gradcli.primitives.entries.powers import sqrt, whole_power
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.record import Recorded, record

# Scales of the points at which derivatives are recorded, tried in turn until all of them are finite; and their step.
_SCALES = (0.5641895835477563, 1.6487212707001282, 0.1353352832366127, -0.5641895835477563)
_STEP = 0.0728771355234467
# More factors than are nested in a modulus.
_DEEPEST = 40
# Functions without a derivative that compare or classify complex numbers.
_TESTS = frozenset(["equal", "not_equal", "isfinite", "isnan", "isinf", "logical_not", "logical_and", "logical_or"])
# The parts of complex numbers, which are real.
PARTS = frozenset([real_part, imaginary_part, phase])


class ConjugatePair(NamedTuple):
    """A value and its conjugate, which are one object where the value is real."""

    value: Any
    conjugate: Any

    @property
    def is_real(self) -> bool:
        return self.value is self.conjugate


class Kept(NamedTuple):
    """A variable that replaces `primitive` of an argument, such as the modulus or a part of a complex number, and the
    conjugate of the argument."""

    variable: Variable
    primitive: Primitive
    argument: Atom
    conjugate: Atom


class ConjugateDerivatives(NamedTuple):
    """Derivatives by the names of real inputs, and by z and conj(z) of complex ones, as outputs of one program that
    follow its value. Its inputs are the imaginary unit, the inputs, the conjugates of complex ones, and what `kept` has."""

    program: Program
    names: Sequence[str]
    kept: Sequence[Kept]

    def by(self, name: str) -> Program:
        return self.program._replace(outputs=(self.program.outputs[1 + self.names.index(name)],))


def conjugate_name(name: str) -> str:
    """The name of the variable that is the conjugate of an input."""
    return f"conj({name})"


def by_conjugates(
    program: Program,
    complex_names: Collection[str],
    wrt: Sequence[str],
    *,
    keep: Collection[Primitive] = (),
    logarithmic: bool = False,
) -> ConjugateDerivatives:
    """The derivatives of a program of numbers by the inputs `wrt`, of which those in `complex_names` are complex.

    The modulus and the parts of complex numbers that are in `keep` become variables, of which the derivatives are known.
    That of a modulus |w| is d(w*conj(w))/(2|w|), or `logarithmic` |w|*(dw/w + dconj(w)/conj(w))/2.
    Raises DifferentiationError for an operation whose conjugate is not known.
    """
    inputs = [v.name or "" for v in program.inputs]
    conjugates = {name: conjugate_name(name) for name in inputs if name in complex_names}
    marked = [i for i, e in enumerate(program.equations) if e.primitive in keep]
    names = [n for name in wrt for n in ([name, conjugates[name]] if name in conjugates else [name])]
    for scale in _SCALES:
        order = [IMAGINARY_UNIT, *inputs, *conjugates.values(), *map(_kept_name, marked)]
        point = {name: scale * (1.0 + i * _STEP) for i, name in enumerate(order)}
        arguments: dict[int, Primitive] = {}

        def run(arguments: dict[int, Primitive] = arguments, **given: Any) -> list[Any]:
            arguments.clear()
            with enable_grad():
                leaves = {n: Tensor(given[n]).requires_grad_(n in names) for n in (*inputs, *conjugates.values())}
                pairs = {n: ConjugatePair(leaves[n], leaves[conjugates.get(n, n)]) for n in inputs}
                reading = _Reading(program, pairs, given, logarithmic)
                value = reading.output()
                found = gradients(value, [leaves[name] for name in names], create_graph=False)
            arguments |= {i: program.equations[i].primitive for i in reading.arguments}
            parts = (part for pair in reading.arguments.values() for part in pair)
            return [value, *(0.0 if d is None else d for d in found), *parts]

        with arrays.quiet():
            traced = record(run, point)
        if all(assume(isfinite(v)) for v in traced.values):
            break
    found = traced.program
    variables = {v.name: v for v in found.inputs}
    outputs = found.outputs[len(names) + 1 :]
    pairs = zip(outputs[::2], outputs[1::2], strict=True)
    kept = [Kept(variables[_kept_name(i)], p, *pair) for (i, p), pair in zip(arguments.items(), pairs, strict=True)]
    return ConjugateDerivatives(found._replace(outputs=found.outputs[: len(names) + 1]), names, kept)


def with_moduli_of_factors(program: Program) -> Program:
    """A program with |u|*|v| in place of |u*v|, the like for quotients and powers, and exp(real(w)) for |exp(w)|."""
    for _ in range(_DEEPEST):
        made = {e.output: e for e in program.equations}
        equations = [
            new
            for equation in program.equations
            for new in (_of_factors(equation, made) if equation.primitive is absolute else (equation,))
        ]
        if len(equations) == len(program.equations):
            break
        program = program._replace(equations=tuple(equations))
    return program


def _of_factors(modulus: Equation, made: Mapping[Variable, Equation]) -> Sequence[Equation]:
    """The equations for the modulus of a product by those of its factors; the modulus itself for other numbers."""
    equation = made.get(modulus.inputs[0])
    if equation is None or equation.output.dtype != "complex128":
        return [modulus]
    if equation.primitive is exp:
        real = Variable((), "float64")
        of_real = Equation(real_part, equation.inputs, {}, real)
        return [of_real, modulus._replace(primitive=exp, inputs=(real,))]
    if equation.primitive not in (multiply, divide, whole_power):
        return [modulus]
    factors: list[Atom] = []
    moduli = []
    for atom in equation.inputs:
        if isinstance(atom, Variable):
            moduli.append(Equation(absolute, (atom,), {}, Variable((), "float64")))
            factors.append(moduli[-1].output)
        else:
            factors.append(abs(complex(atom)))
    return [*moduli, equation._replace(inputs=tuple(factors), output=modulus.output)]


def _kept_name(i: int) -> str:
    """The name of the variable for the result of an equation; the space keeps it apart from names of the language."""
    return f"part {i}"


class _Reading:
    """Runs the equations of a program on pairs. `arguments` has those of the parts that are kept, by equation, and
    their conjugates."""

    def __init__(
        self, program: Program, inputs: Mapping[str, ConjugatePair], given: Mapping[str, Any], logarithmic: bool
    ) -> None:
        self.program = program
        self.logarithmic = logarithmic
        self.unit = given[IMAGINARY_UNIT]
        self.given = given
        self.arguments: dict[int, ConjugatePair] = {}
        # The equations that are kept, by primitive and argument.
        self.same: dict[Any, int] = {}
        self.known: dict[Variable, ConjugatePair] = {v: inputs[v.name or ""] for v in program.inputs}

    def output(self) -> Any:
        for i, equation in enumerate(self.program.equations):
            self.known[equation.output] = self._equation(i, equation)
        (output,) = self.program.outputs
        return self._atom(output).value

    def _atom(self, atom: Atom) -> ConjugatePair:
        if isinstance(atom, Variable):
            return self.known[atom]
        if not arrays.is_complex(atom) or arrays.shape(atom):
            return ConjugatePair(atom, atom)
        number = complex(atom)
        if not number.imag:
            real = number.real
            return ConjugatePair(real, real)
        imaginary = multiply(number.imag, self.unit) if number.imag != 1 else self.unit
        if not number.real:
            return ConjugatePair(imaginary, negative(imaginary))
        return ConjugatePair(add(number.real, imaginary), subtract(number.real, imaginary))

    def _equation(self, i: int, equation: Equation) -> ConjugatePair:
        primitive, _, params, _ = equation
        operands = [self._atom(a) for a in equation.inputs]
        if primitive is conjugate:
            return ConjugatePair(*reversed(operands[0]))
        if primitive is from_parts:
            return self._from_parts(*operands)
        if all(operand.is_real for operand in operands):
            return self._of_reals(primitive, operands, params)
        if primitive in _PARTS_OF:
            return self._part(i, primitive, operands[0])
        if primitive.name == "cast":
            return operands[0]
        if primitive.name in ("zeros_like", "ones_like"):
            number = float(primitive.name == "ones_like")
            return ConjugatePair(number, number)
        values = [operand.value for operand in operands]
        if primitive.name in _TESTS:
            found = bind(primitive, values, params)
            return ConjugatePair(found, found)
        check_reflected(primitive, params)
        conjugates = [operand.conjugate for operand in operands]
        return ConjugatePair(bind(primitive, values, params), bind(primitive, conjugates, params))

    def _of_reals(
        self, primitive: Primitive, operands: Sequence[ConjugatePair], params: Mapping[str, Any]
    ) -> ConjugatePair:
        """An operation on real numbers, some of which may be typed as complex ones."""
        if primitive is real_part or (primitive.name == "cast" and "complex" in params["dtype"]):
            return operands[0]
        if primitive is imaginary_part:
            return ConjugatePair(0.0, 0.0)
        found = bind(primitive, [operand.value for operand in operands], params)
        return ConjugatePair(found, found)

    def _from_parts(self, real: ConjugatePair, imaginary: ConjugatePair) -> ConjugatePair:
        times = multiply(self.unit, imaginary.value)
        return ConjugatePair(add(real.value, times), subtract(real.value, times))

    def _part(self, i: int, primitive: Primitive, operand: ConjugatePair) -> ConjugatePair:
        if _kept_name(i) not in self.given:
            found = _PARTS_OF[primitive](operand, self.unit)
            return ConjugatePair(found, found)
        argument, other = constant(operand.value), constant(operand.conjugate)
        i = self.same.setdefault((primitive, _identity(argument)), i)
        if primitive is absolute:
            self.same[primitive, _identity(other)] = i
        self.arguments.setdefault(i, ConjugatePair(argument, other))
        kept = self.given[_kept_name(i)]
        change = self._change(operand, kept) if primitive is absolute else _PARTS_OF[primitive](operand, self.unit)
        # The variable with the derivative of what it stands for, which itself cancels.
        found = add(kept, subtract(change, constant(change)))
        return ConjugatePair(found, found)

    def _change(self, operand: ConjugatePair, modulus: Any) -> Any:
        """An expression with the derivative of the modulus."""
        if self.logarithmic:
            return multiply(modulus, divide(add(log(operand.value), log(operand.conjugate)), 2.0))
        return divide(multiply(operand.value, operand.conjugate), multiply(2.0, modulus))


def _identity(value: Any) -> Any:
    """The variable that a value was recorded as, or the number that it is."""
    return value.variable if isinstance(value, Recorded) else value


def check_reflected(primitive: Primitive, params: Mapping[str, Any]) -> None:
    """Raise DifferentiationError where the function of a conjugate need not be the conjugate of the function."""
    if primitive.numbers != "analytic" or not primitive.elementwise or params.get("k"):
        raise DifferentiationError(
            f"there is no formula for the derivative of '{primitive.called}' of complex numbers",
            hint="gradcli eval computes it at a point",
        )


def _modulus(operand: ConjugatePair, _unit: Any) -> Any:
    return sqrt(multiply(operand.value, operand.conjugate))


def _real(operand: ConjugatePair, _unit: Any) -> Any:
    return divide(add(operand.value, operand.conjugate), 2.0)


def _imaginary(operand: ConjugatePair, unit: Any) -> Any:
    return divide(subtract(operand.value, operand.conjugate), multiply(2.0, unit))


def _angle(operand: ConjugatePair, unit: Any) -> Any:
    return divide(subtract(log(operand.value), log(operand.conjugate)), multiply(2.0, unit))


_PARTS_OF: dict[Primitive, Callable[[ConjugatePair, Any], Any]] = {
    absolute: _modulus, real_part: _real, imaginary_part: _imaginary, phase: _angle,
}  # fmt: skip
