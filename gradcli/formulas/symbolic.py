"""Derives formulas for the derivatives of a program by recording and simplification."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from gradcli import arrays, limits
from gradcli.arrays.index_keys import has_arrays
from gradcli.errors import DifferentiationError, LimitError, UsageError, locating
from gradcli.formulas.derivation import By, derivation, example, value_of
from gradcli.formulas.simplification.formula import formula
from gradcli.formulas.writing.documents import Formulas
from gradcli.formulas.writing.root_sum_squares import has_squares
from gradcli.formulas.writing.text_writer import Language
from gradcli.kinds.jets import check_order
from gradcli.language.interpreter.mutable_references import ElementwiseInput
from gradcli.language.names.resolution import resolve
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.axes import MOST_AXES
from gradcli.primitives.entries.arithmetic import heaviside
from gradcli.primitives.entries.comparisons import equal, isfinite, not_equal
from gradcli.primitives.entries.complex_parts import from_parts
from gradcli.primitives.entries.elementwise.complex_numbers import polar
from gradcli.program.ir import Equation, Key, Program, Variable, element_name, owner_name
from gradcli.program.passes import optimise
from gradcli.program.record import record

# Simplifies a program to a short formula.
_Shorten = Callable[[Program], Program]
_EQUALITIES = {"==": equal, "!=": not_equal}
# The least cost of a derivative, in eighths of steps.
_DERIVATIVE = 30 * limits.UNITS_PER_STEP
# Primitives that are avoided in tensor formulas where the formula can be written in terms of elements.
_MOVING = frozenset({"index", "put_at", "stack", "concat"})


def derivatives_as_formulas(
    program: tree.Module,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
    order: int = 1,
    *,
    language: Language | None = None,
    conjugates: bool = False,
    wirtinger: bool = False,
) -> Formulas:
    """Return formulas for the derivatives of `order` of a program's value by the names in `wrt`, each mixed one once.

    A number in `bindings` replaces its name, unless the name is in `wrt`; a tensor gives its name a shape. Every other
    name stands for any number, or, where the program reads its elements, for a tensor. Formulas are written in elements
    of tensors where the program takes tensors apart, or where `language` has no tensors. Where control flow depends on
    numbers, the formulas select by conditions.

    With `conjugates`, programs may take conjugates, moduli and parts of complex numbers: a real value of a complex input
    has a gradient, and a complex one a derivative if it is proved to be holomorphic. With `wirtinger`, the derivatives by
    complex inputs and by their conjugates are returned, and every other name stands for any complex number.

    Raises NotRecordableError where there is no single formula because the number of iterations depends on numbers,
    DifferentiationError for a non-scalar value, UsageError where there are no elements to differentiate by, and
    LimitError for orders above 170 or too many execution paths.
    """
    with locating(program.source, program.body[-1].span):
        _check(bindings, wrt, order)
        shorten = partial(
            formula,
            typed=_decimals(program, bindings),
            equality=compared_for_equality(program) is not None,
            finiteness=_tests_finiteness(program),
        )
        if wirtinger or (conjugates and _has_complex_numbers(program, bindings)):
            # Loaded on demand: few formulas have complex numbers.
            from gradcli.formulas.complex_variables.complex_formulas import formulas_with_conjugates

            found = formulas_with_conjugates(
                program, bindings, wrt, order, shorten, language=language, wirtinger=wirtinger
            )
            if found is not None:
                return found
        programs = derivation(program, bindings, wrt, order)
        squares = has_squares(programs[()])
        tensors = language is None or language.tensors or _is_written_as_it_stands(program, programs, language)
        formulas = _simplified(programs, shorten) if tensors and not _reads_elements(programs[()], wrt) else {}
        if not formulas or any(e.primitive.name in _MOVING for f in formulas.values() for e in f.equations):
            parts = _by_element(programs, shorten)
            if parts is not None:
                programs, formulas = parts, _simplified(parts, shorten)
            elif not formulas:
                formulas = _simplified(programs, shorten)
    if not formulas:
        raise UsageError(f"there is nothing to differentiate by: {' and '.join(map(repr, wrt))} has no elements")
    if any(v.name == IMAGINARY_UNIT for v in programs[()].inputs):
        with locating(program.source, program.body[-1].span):
            return _in_complex(program, bindings, wrt, order, programs[()], formulas, language)
    return Formulas(program.source, programs[()], formulas, squares)


def _in_complex(
    program: tree.Module,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
    order: int,
    value: Program,
    formulas: Mapping[str, Program],
    language: Language | None,
) -> Formulas:
    """Formulas with the number 1j in place of the input that stands for it, after they are compared with the program."""
    # Loaded on demand: few formulas have complex numbers.
    from gradcli.formulas.complex_variables import imaginary_unit

    complex_names = frozenset(name for name, v in bindings.items() if arrays.is_complex(v))
    imaginary_unit.check_analytic(value, complex_names)
    imaginary_unit.check_code([value, *formulas.values()], complex_names, language)
    imaginary_unit.check_at_points(program, bindings, {"": value, **formulas}, wrt, order)
    written = {key: imaginary_unit.with_unit(formula) for key, formula in formulas.items()}
    return Formulas(program.source, imaginary_unit.with_unit(value), written, complex_names=complex_names)


def parsed_formula(text: str, like: Program) -> Program:
    """Parse a formula of the expression language whose inputs are those of the program `like`."""
    return optimise(recorded_formula(text, {v.name or "": example(v.shape, i) for i, v in enumerate(like.inputs)}))


def recorded_formula(text: str, inputs: Mapping[str, Any]) -> Program:
    """Record a formula exactly as it is written; its inputs may be elements of tensors."""
    program = parse_charged(text)

    def run(**given: Any) -> list[Any]:
        def element(name: str, key: Key) -> Any:
            return given[element_name(name, key)]

        names = {name: owner_name(name) for name in given}
        values = {of: given[name] if of == name else ElementwiseInput(of, None, element) for name, of in names.items()}
        return [value_of(program, values)]

    return record(run, inputs).program._replace(guards=())


def _check(bindings: Mapping[str, Any], wrt: Sequence[str], order: int) -> None:
    check_order(order)
    if order * max(len(arrays.shape(bindings.get(name, 0.0))) for name in wrt) > MOST_AXES:
        raise LimitError(f"a derivative of order {order} by a tensor has more than {MOST_AXES} axes")
    limits.charge_steps(_DERIVATIVE * math.comb(len(wrt) + order - 1, order))


def _simplified(programs: Mapping[By, Program], shorten: _Shorten) -> Mapping[str, Program]:
    return {",".join(by): shorten(program) for by, program in programs.items() if by}


def _decimals(program: tree.Module, bindings: Mapping[str, Any]) -> Collection[float]:
    """Return the non-integer literals of a program and of the values of its names."""
    numbers = [n.value for n in tree.all_nodes(program) if isinstance(n, (tree.Number, tree.Imaginary))]
    numbers += [part for v in bindings.values() if not arrays.shape(v) for part in (float(v.real), float(v.imag))]
    return {n for n in numbers if math.isfinite(n) and not float(n).is_integer()}


def _has_complex_numbers(program: tree.Module, bindings: Mapping[str, Any]) -> bool:
    """Return whether a program writes complex numbers, makes them of two real ones, or is given them."""
    return (
        resolve(program).has_imaginary_literals
        or any(map(arrays.is_complex, bindings.values()))
        or any(isinstance(n, tree.Call) and table.find(n.name) in (from_parts, polar) for n in tree.all_nodes(program))
    )


def compared_for_equality(program: tree.Module) -> tree.Expression | None:
    """The first place where the source text compares numbers by == or !=, for example a category with its code, or by
    `heaviside` with a value at 0 that may be differentiated, as it is no number."""
    return next((node for node in tree.all_nodes(program) if _compares_for_equality(node)), None)


def _compares_for_equality(node: tree.SyntaxNode) -> TypeGuard[tree.Expression]:
    if isinstance(node, tree.Compare):
        return any(operator in _EQUALITIES for operator in node.operators)
    if not isinstance(node, tree.Call):
        return False
    function = table.find(node.name)
    if function is heaviside:
        operands = (*tree.positional(node), *(keyword.value for keyword in node.keywords))
        return not any(isinstance(operand, tree.Number) for operand in operands)
    return function in _EQUALITIES.values()


def tests_equality(derivative: Program, by: str) -> bool:
    """Return whether a derivative by a name selects by whether numbers that depend on this name are equal."""
    dependent: set[Variable] = {v for v in derivative.inputs if owner_name(v.name or "") == by}
    for equation in derivative.equations:
        if any(isinstance(a, Variable) and a in dependent for a in equation.inputs):
            if equation.primitive in _EQUALITIES.values():
                return True
            dependent.add(equation.output)
    return False


def _tests_finiteness(program: tree.Module) -> bool:
    """Return whether the source text tests whether numbers are finite."""
    return any(isinstance(node, tree.Call) and table.find(node.name) is isfinite for node in tree.all_nodes(program))


def _is_written_as_it_stands(program: tree.Module, programs: Mapping[By, Program], language: Language) -> bool:
    """Return whether a program computes only with scalars, without control flow, in primitives and numbers that
    `language` can write.

    Such a program needs no splitting into elements.
    """
    apart = (tree.Index, tree.If, tree.Conditional, tree.For, tree.While, tree.Comprehension)
    value = programs[()].equations
    numbers = [a for e in value for a in e.inputs if not isinstance(a, Variable)]
    return (
        not any(isinstance(node, apart) for node in tree.all_nodes(program))
        and all(map(_is_elementwise, programs.values()))
        and all(language.writes(equation.primitive) for equation in value)
        and all(_has_number(language, number) for number in numbers)
    )


def _has_number(language: Language, number: Any) -> bool:
    try:
        language.number(number)
    except DifferentiationError:
        return False
    return True


def _is_elementwise(program: Program) -> bool:
    """Return whether a program is elementwise and computes only with scalars."""
    equations = program.equations
    atoms = [*program.inputs, *(a for e in equations for a in (*e.inputs, e.output))]
    return all(e.primitive.elementwise for e in equations) and not any(arrays.shape(atom) for atom in atoms)


def _reads_elements(value: Program, wrt: Sequence[str]) -> bool:
    """Return whether the program takes elements out of tensors that depend on the names in `wrt`."""
    by = frozenset(wrt)
    varying = {v for v in value.inputs if v.name in by}
    for equation in value.equations:
        if varying.intersection(a for a in equation.inputs if isinstance(a, Variable)):
            if _takes_elements(equation):
                return True
            varying.add(equation.output)
    return False


def _takes_elements(equation: Equation) -> bool:
    if equation.primitive.name != "index":
        return False
    key = equation.params["key"]
    parts = any(isinstance(i, int) or (isinstance(i, slice) and i != slice(None)) for i in key)
    # Indexing by an array of positions may take a diagonal or rows of a table.
    return parts and not has_arrays(key)


def _by_element(programs: Mapping[By, Program], shorten: _Shorten) -> Mapping[By, Program] | None:
    """Rewrite the programs in terms of the elements of all tensors; None where that is impossible."""
    # Loaded on demand: most formulas do not need it.
    from gradcli.program.scalarisation import TensorsNeededError, by_element

    shapes = {v.name: v.shape for v in programs[()].inputs}
    order = {name: i for i, name in enumerate(dict.fromkeys(itertools.chain.from_iterable(programs)))}
    found = {}
    for by, program in programs.items():
        try:
            split = by_element(shorten(program))
        except TensorsNeededError:
            return None
        keys = itertools.product(*(itertools.product(*map(range, shapes.get(name, ()))) for name in by))
        for key, output in zip(keys, split.outputs):
            places = [(order[name], k) for name, k in zip(by, key)]
            if sorted(places) == places:
                names = tuple(element_name(n, k) if k else n for n, k in zip(by, key))
                found[tuple(places)] = names, split._replace(outputs=(output,))
    return {names: optimise(program) for _, (names, program) in sorted(found.items())}
