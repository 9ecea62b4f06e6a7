"""Formulas for Wirtinger's derivatives, by complex inputs and by their conjugates, and for gradients by complex inputs.

The rules that formulas are simplified by hold for real numbers. Every formula is therefore compared with the derivatives
of the program at points all around 0, and the shortest of those that agree is taken.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import complex_derivatives, wirtinger_derivatives
from gradcli.calculus.derivatives import gradients
from gradcli.errors import DifferentiationError, GradcliError, LimitError
from gradcli.executors import stepwise
from gradcli.formulas.complex_variables.conjugate_variables import (
    PARTS,
    ConjugateDerivatives,
    Kept,
    by_conjugates,
    conjugate_name,
    with_moduli_of_factors,
)
from gradcli.formulas.languages.text import text
from gradcli.formulas.writing.documents import SHORT, merge_programs
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.arithmetic import absolute, add, multiply, subtract
from gradcli.primitives.entries.complex_parts import conjugate, from_parts, imaginary_part, real_part
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import optimise, without_dead_code

# Simplifies a program to a short formula.
Shorten = Callable[[Program], Program]
# A function of the values of its inputs by name.
Function = Callable[[Mapping[str, Any]], Any]

# The number of points at which formulas are compared, and their moduli, which grow from one to the next by a factor.
_POINTS, _SMALLEST, _GROWTH = 14, 0.21, 1.27
# The angle between one point and the next, the golden one, and between inputs at one point.
_TURN, _TURN_OF_INPUTS = 2.399963229728653, 1.1
# Relative difference that rounding may cause, and the modulus of derivatives below which it is absolute.
_TOLERANCE, _SMALL = 1e-8, 1e-3
# The rounding error of the derivatives at a point, as a share of the largest.
_ROUNDING = 1e-13
# The characters by which a formula with abs(z)/z must be shorter than one with conj(z)/abs(z), and one with
# sqrt(z*conj(z)) than one with abs(z).
_HANDICAP_OF_TURNS, _HANDICAP_OF_ROOTS = 8, 40
# More characters than a formula has: what is not simplified comes last.
_LAST = 1_000_000


class WirtingerRequest(NamedTuple):
    """A function to differentiate: a program of numbers, the function that it computes, its complex inputs, and those
    to differentiate by."""

    program: Program
    function: Function
    complex_names: frozenset[str]
    wrt: Sequence[str]


def wirtinger_formulas(request: WirtingerRequest, order: int, shorten: Shorten) -> dict[str, Program]:
    """The derivatives of `order` by real inputs, and by complex ones z and conj(z), each mixed one once. Keys are the
    names joined by commas in the order of `wrt`, as in "z,conj(z)".

    Raises DifferentiationError for an operation whose conjugate is not known, and where no formula is known to hold.
    """
    return _formulas(request, _names(request), order, shorten)


def _formulas(request: WirtingerRequest, names: Sequence[str], order: int, shorten: Shorten) -> dict[str, Program]:
    """The derivatives of `order` by `names`, with the keys of `wirtinger_formulas`."""
    places = {name: i for i, name in enumerate(names)}
    found: dict[str, Program] = {"": request.program}
    for _ in range(order):
        below, found = found, {}
        for key, program in below.items():
            last = places[key.rpartition(",")[2]] if key else 0
            at = request._replace(program=program, function=request.function if not key else _function(program))
            for name, formula in _first_order(at, names, shorten).items():
                if places[name] >= last:
                    found[f"{key},{name}" if key else name] = formula
    return found


def gradient_formulas(request: WirtingerRequest, shorten: Shorten) -> dict[str, Program]:
    """The gradients of a real value: by complex inputs z = a + i*b they are d/da + i*d/db, twice the derivatives by
    conj(z). Raises as `wirtinger_formulas` does."""
    doubled = {conjugate_name(name): name for name in request.wrt if name in request.complex_names}
    names = [name for name in _names(request) if name not in request.complex_names]
    found = _first_order(request, names, shorten, doubled)
    return {doubled.get(name, name): formula for name, formula in found.items()}


def holomorphic_formulas(request: WirtingerRequest, order: int, shorten: Shorten) -> dict[str, Program]:
    """The derivatives of `order` of a value that is holomorphic in complex inputs. Raises as `wirtinger_formulas`
    does."""
    return _formulas(request, request.wrt, order, shorten)


def writable(program: Program) -> Program:
    """A program whose only complex constant is 1j, with complex(a, b) as a + 1j*b; casts to complex and guards are left
    out."""
    equations: list[Equation] = []

    def apply(primitive: Primitive, *inputs: Atom) -> Variable:
        output = Variable((), "complex128")
        equations.append(Equation(primitive, inputs, {}, output))
        return output

    def atom(value: Atom) -> Atom:
        if isinstance(value, Variable) or not arrays.is_complex(value):
            return value
        number = complex(value)
        if not number.imag:
            return number.real
        imaginary = 1j if number.imag == 1 else apply(multiply, number.imag, 1j)
        return imaginary if not number.real else apply(add, number.real, imaginary)

    substitution: dict[Variable, Atom] = {}
    for primitive, inputs, params, output in program.equations:
        operands = [substitution.get(a, a) if isinstance(a, Variable) else atom(a) for a in inputs]
        if primitive is from_parts:
            substitution[output] = apply(add, operands[0], apply(multiply, 1j, operands[1]))
        elif primitive.name == "cast" and "complex" in params["dtype"]:
            substitution[output] = operands[0]
        else:
            equations.append(Equation(primitive, tuple(operands), params, output))
    outputs = [substitution.get(a, a) if isinstance(a, Variable) else atom(a) for a in program.outputs]
    return program._replace(equations=tuple(equations), outputs=tuple(outputs), guards=())


def numbers_at(programs: Mapping[str, Program], point: Mapping[str, Any]) -> dict[str, Any]:
    """The values of programs of numbers at a point."""
    with arrays.quiet():
        return {key: _function(program)(point) for key, program in programs.items()}


def _names(request: WirtingerRequest) -> list[str]:
    pairs = ([n, conjugate_name(n)] if n in request.complex_names else [n] for n in request.wrt)
    return [*itertools.chain.from_iterable(pairs)]


def _first_order(
    request: WirtingerRequest, names: Sequence[str], shorten: Shorten, doubled: Collection[str] = ()
) -> dict[str, Program]:
    """The first derivatives by `names`, twice as large by those in `doubled`."""
    first, *others = _forms(request.program)
    forms = [(first, _derivatives_in(first, request))]
    with suppress(LimitError), limits.optional_budget():
        for form in others:
            forms.append((form, _derivatives_in(form, request)))
    known = _known(request)
    found = {}
    for name in names:
        factor = 2.0 if name in doubled else 1.0
        candidates = _candidates(request, forms, name, factor, shorten)
        for _, candidate in sorted(candidates, key=lambda pair: pair[0]):
            if _agrees(candidate, name, known, factor):
                found[name] = candidate
                break
        else:
            raise DifferentiationError(
                "there is no formula of these complex numbers that is known to hold everywhere",
                hint="gradcli eval computes the derivatives at a point",
            )
    return found


# --- forms of a derivative


class _Form(NamedTuple):
    """A form of the derivatives: `keep` has the functions among modulus and parts that are kept, rather than written in
    terms of z and conj(z), and `logarithmic` says how the modulus is differentiated, both as for `by_conjugates`;
    `program` is the program, or one in which the modulus of a product is a product of moduli."""

    keep: frozenset[Primitive]
    logarithmic: bool
    program: Program


def _forms(program: Program) -> Sequence[_Form]:
    """The different forms for a program."""
    found: list[_Form] = []
    factored = with_moduli_of_factors(program)
    for variant in (program,) if factored is program else (program, factored):
        has = {e.primitive for e in variant.equations}
        parts, modulus = PARTS & has, frozenset([absolute]) & has
        moduli = [(modulus, False), (modulus, True), (frozenset(), False)] if modulus else [(modulus, False)]
        kept = (frozenset(), parts) if parts else (parts,)
        found += [_Form(keep | of, logarithmic, variant) for of, logarithmic in moduli for keep in kept]
    return found


def _derivatives_in(form: _Form, request: WirtingerRequest) -> ConjugateDerivatives:
    """The derivatives in a form, without guards: those of rules exclude points where formulas may hold."""
    names, wrt = request.complex_names, request.wrt
    found = by_conjugates(form.program, names, wrt, keep=form.keep, logarithmic=form.logarithmic)
    return found._replace(program=found.program._replace(guards=()))


def _candidates(
    request: WirtingerRequest,
    forms: Sequence[tuple[_Form, ConjugateDerivatives]],
    name: str,
    factor: float,
    shorten: Shorten,
) -> Sequence[tuple[int, Program]]:
    """Formulas for one derivative, each with its cost: its length in characters, plus penalties for forms that are less
    readable. There are as many as a share of the steps allows, and the one that is not simplified."""
    has_moduli = any(absolute in form.keep for form, _ in forms)
    _, first = forms[0]
    found: list[tuple[int, Program]] = []

    def written(derivatives: ConjugateDerivatives, shorten: Shorten) -> tuple[int, Program]:
        program = _times(factor, derivatives.by(name))
        short = _spliced(request.program, derivatives, shorten(program), shorten)
        return len(text(short, short=SHORT)), short

    with suppress(LimitError), limits.optional_budget():
        for form, derivatives in forms:
            length, short = written(derivatives, shorten)
            # A square root of z*conj(z) is a modulus.
            roots = absolute not in form.keep and any(e.primitive is conjugate for e in short.equations)
            turned = form.logarithmic and any(e.primitive is absolute for e in short.equations)
            found.append((length + _HANDICAP_OF_TURNS * turned + _HANDICAP_OF_ROOTS * (roots and has_moduli), short))
        found += [written(_by_parts(first, request.complex_names, p), shorten) for p in (real_part, imaginary_part)]
    length, plain = written(first, optimise)
    return [*found, (_LAST + length, plain)]


def _by_parts(
    derivatives: ConjugateDerivatives, complex_names: Collection[str], part: Primitive
) -> ConjugateDerivatives:
    """Derivatives with 2*real(z) - z, or z - 2j*imag(z), in place of the conjugate of each complex input z."""
    inputs = {v.name or "": v for v in derivatives.program.inputs}
    before: list[Equation] = []
    substitution: dict[Variable, Atom] = {}
    kept = []
    for name in [name for name in inputs if name in complex_names]:
        z, of_z = inputs[name], Variable((), "float64", f"{part.called} {name}")
        kept.append(Kept(of_z, part, z, inputs[conjugate_name(name)]))
        twice: Atom = 2.0
        if part is imaginary_part:
            twice = Variable((), "float64")
            before.append(Equation(multiply, (2.0, inputs[IMAGINARY_UNIT]), {}, twice))
        double, found = Variable((), "float64"), Variable((), "float64")
        before.append(Equation(multiply, (twice, of_z), {}, double))
        before.append(Equation(subtract, (double, z) if part is real_part else (z, double), {}, found))
        substitution[inputs[conjugate_name(name)]] = found
    program = _with(derivatives.program, substitution, before)
    program = program._replace(inputs=(*program.inputs, *(part.variable for part in kept)))
    return ConjugateDerivatives(program, derivatives.names, [*kept, *derivatives.kept])


def _times(factor: float, program: Program) -> Program:
    """A multiple of a program."""
    if factor == 1.0:
        return program
    product = Variable((), "float64")
    equation = Equation(multiply, (factor, program.outputs[0]), {}, product)
    return program._replace(equations=(*program.equations, equation), outputs=(product,))


def _with(program: Program, substitution: Mapping[Variable, Atom], before: Sequence[Equation] = ()) -> Program:
    """A program with other atoms in place of variables, which the equations `before` define."""

    def atom(value: Atom) -> Atom:
        return substitution.get(value, value) if isinstance(value, Variable) else value

    equations = [e._replace(inputs=tuple([atom(a) for a in e.inputs])) for e in program.equations]
    outputs = tuple([atom(a) for a in program.outputs])
    return program._replace(equations=(*before, *equations), outputs=outputs)


def _spliced(value: Program, derivatives: ConjugateDerivatives, program: Program, shorten: Shorten) -> Program:
    """A program in the inputs of the program `value`, with the imaginary unit, conjugates, moduli and parts in place of
    the variables that stand for them."""
    inputs = {v.name or "": v for v in value.inputs}
    conjugates = {conjugate_name(name): v for name, v in inputs.items()}
    before: list[Equation] = []
    substitution: dict[Variable, Atom] = {}
    for variable in derivatives.program.inputs:
        name = variable.name or ""
        if name == IMAGINARY_UNIT:
            substitution[variable] = 1j
        elif name in conjugates:
            substitution[variable] = Variable((), "complex128")
            before.append(Equation(conjugate, (conjugates[name],), {}, substitution[variable]))
        elif name in inputs:
            substitution[variable] = inputs[name]
    for variable, primitive, argument, _ in derivatives.kept:
        inner = _with(shorten(derivatives.program._replace(outputs=(argument,))), substitution)
        before += inner.equations
        substitution[variable] = Variable((), "float64")
        before.append(Equation(primitive, inner.outputs, {}, substitution[variable]))
    found = _with(program, substitution, before)
    return without_dead_code(merge_programs([found._replace(inputs=value.inputs)]))


# --- comparison with the program


class _Known(NamedTuple):
    """The derivatives of a program at one point."""

    point: Mapping[str, Any]
    derivatives: Mapping[str, Any]


def _known(request: WirtingerRequest) -> Sequence[_Known]:
    """The derivatives at the points where there are any. Raises what all of them raise, and DifferentiationError where
    no derivative is finite."""
    found: list[_Known] = []
    inputs = [v.name or "" for v in request.program.inputs]
    for k in range(_POINTS):
        point = {name: _number(k, i, name in request.complex_names) for i, name in enumerate(inputs)}
        with arrays.quiet():
            try:
                derivatives = _derivatives(request, point)
            except GradcliError:
                if k == _POINTS - 1 and not found:
                    raise
                continue
        if any(map(cmath.isfinite, derivatives.values())):
            found.append(_Known(point, derivatives))
    if not found:
        raise DifferentiationError(
            "the formulas of these complex numbers cannot be compared with the program",
            hint="gradcli eval computes the derivatives at a point",
        )
    return found


def _number(k: int, i: int, is_complex: bool) -> complex | float:
    """The i-th input of the k-th point."""
    modulus = _SMALLEST * _GROWTH ** ((k + 5 * i) % _POINTS)
    angle = k * _TURN + (i + 1) * _TURN_OF_INPUTS
    return cmath.rect(modulus, angle) if is_complex else math.copysign(modulus, math.cos(angle))


def _derivatives(request: WirtingerRequest, point: Mapping[str, Any]) -> dict[str, Any]:
    with enable_grad():
        leaves = {name: Tensor(point[name]).requires_grad_() for name in request.wrt if name in point}
        value = request.function({**point, **leaves})
        complex_leaves = {name: leaf for name, leaf in leaves.items() if name in request.complex_names}
        reals = {name: leaf for name, leaf in leaves.items() if name not in complex_leaves}
        pairs = wirtinger_derivatives(value, complex_leaves, gradients)
        if arrays.is_complex(value):
            found = complex_derivatives(value, reals, gradients)
        else:
            found = dict(zip(reals, gradients(value, [*reals.values()])))
    for name, pair in pairs.items():
        found[name], found[conjugate_name(name)] = pair or (None, None)
    return {name: 0.0 if d is None else concrete(d) for name, d in found.items()}


def _agrees(formula: Program, name: str, known: Sequence[_Known], factor: float) -> bool:
    """Return whether a formula is the derivative, or a multiple of it, at all points where that is accurate."""
    function = _function(formula)
    compared = 0
    for point, derivatives in known:
        wanted = derivatives.get(name, 0.0) * factor
        allowed = _TOLERANCE * max(abs(wanted), _SMALL)
        if not cmath.isfinite(wanted) or _ROUNDING * max(map(abs, derivatives.values())) > allowed:
            continue
        compared += 1
        with arrays.quiet():
            try:
                found = function(point)
            except GradcliError:
                return False
        # A formula is nan where it has a real number, such as sqrt(-2), in place of a complex one.
        if not abs(found - wanted) <= allowed:
            return False
    return compared > 0


def _function(program: Program) -> Function:
    """The function that a program of numbers computes."""

    def function(given: Mapping[str, Any]) -> Any:
        return stepwise.outputs(program._replace(guards=()), [given[v.name or ""] for v in program.inputs])[0]

    return function
