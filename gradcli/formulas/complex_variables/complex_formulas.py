"""Formulas for the derivatives of programs that take conjugates, moduli and parts of complex numbers."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.calculus.complex_derivatives import check_real_leaves
from gradcli.errors import DifferentiationError, NonHolomorphicError, NotRecordableError, ShapeError
from gradcli.formulas.complex_variables.holomorphic_programs import is_holomorphic
from gradcli.formulas.complex_variables.imaginary_unit import check_code
from gradcli.formulas.complex_variables.wirtinger import (
    WirtingerRequest,
    gradient_formulas,
    holomorphic_formulas,
    wirtinger_formulas,
    writable,
)
from gradcli.formulas.derivation import example
from gradcli.formulas.writing.documents import Formulas
from gradcli.formulas.writing.text_writer import Language
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.complex_parts import from_parts
from gradcli.program.execution_paths import join_paths, record_paths
from gradcli.program.ir import Program

# Scales of the points at which names without a value are recorded, and the angle of complex ones.
_SCALES, _ANGLE = (0.5641895835477563, 1.6487212707001282, 0.1353352832366127, -0.5641895835477563), 0.5235987755982988


def formulas_with_conjugates(
    program: tree.Module,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
    order: int,
    shorten: Callable[[Program], Program],
    *,
    language: Language | None,
    wirtinger: bool,
) -> Formulas | None:
    """The formulas of `derivatives_as_formulas`; None where all operations on complex numbers are analytic and Wirtinger's
    derivatives are not asked for.

    Raises NonHolomorphicError for a complex value of complex inputs that is not proved to be holomorphic.
    """
    fixed = {n: v for n, v in bindings.items() if n not in wrt and not arrays.shape(v)}
    names = [
        n for n in scope.free_names(program) if n not in fixed and (n in wrt or n in bindings or _is_open(program, n))
    ]
    complex_names = frozenset(n for n in names if (arrays.is_complex(bindings[n]) if n in bindings else wirtinger))
    if wirtinger and complex_names.isdisjoint(wrt):
        raise DifferentiationError(
            "Wirtinger's derivatives are those by complex inputs, and none is complex", hint="z=1+2j is a complex one"
        )
    if any(arrays.shape(bindings.get(n, 0.0)) for n in names):
        if not wirtinger:
            return None
        raise _tensors()

    def function(given: Mapping[str, Any]) -> Any:
        return evaluate(program, {**fixed, **given}, rewrite=False, rolling="never").value

    try:
        value = _recorded(function, names, complex_names)
    except ShapeError:
        # Names of tensors without a value are recorded as numbers here.
        if not wirtinger:
            return None
        raise _tensors() from None
    if not wirtinger and _is_analytic(value):
        return None
    if any(arrays.shape(atom) for e in value.equations for atom in (*e.inputs, e.output)):
        raise _tensors()
    request = WirtingerRequest(value, function, complex_names, wrt)
    if wirtinger or complex_names.isdisjoint(wrt):
        found = wirtinger_formulas(request, order, shorten)
    elif not arrays.is_complex(value.outputs[0]):
        check_real_leaves({name: 1j if name in complex_names else 1.0 for name in wrt}, order)
        found = gradient_formulas(request, shorten)
    elif is_holomorphic(value, [name for name in wrt if name in complex_names]):
        found = holomorphic_formulas(request, order, shorten)
    else:
        name = next(name for name in wrt if name in complex_names)
        raise NonHolomorphicError(
            "the program is not holomorphic, or not known to be, and has no derivative by a complex input alone",
            hint=f"--wirtinger gives the derivatives by {name} and by conj({name})",
        )
    value = writable(value)
    found = {key: writable(formula) for key, formula in found.items()}
    check_code([value, *found.values()], complex_names, language)
    return Formulas(program.source, value, found, complex_names=complex_names)


def _is_open(program: tree.Module, name: str) -> bool:
    """Return whether a name that the program reads has no value of its own."""
    return name not in scope.CONSTANTS and not scope.free_names(program)[name].maybe_assigned


def _tensors() -> DifferentiationError:
    return DifferentiationError(
        "formulas with complex numbers are those of numbers, and this is one of tensors",
        hint="gradcli eval computes the derivatives at a point",
    )


def _recorded(
    function: Callable[[Mapping[str, Any]], Any], names: Sequence[str], complex_names: Collection[str]
) -> Program:
    """The value as a program of all names, with `where` in place of control flow."""

    def run(**given: Any) -> dict[tuple[str, ...], Any]:
        value = function(given)
        return {(): value if arrays.is_inexact(value) else cast(value, "float64")}

    points = [
        {
            n: example((), i, scale) * (cmath.rect(1.0, _ANGLE) if n in complex_names else 1.0)
            for i, n in enumerate(names)
        }
        for scale in _SCALES
    ]
    try:
        with arrays.quiet():
            _, program = join_paths(record_paths(run, points))
    except NotRecordableError as error:
        error.message = "there is no single formula: what is computed here depends on the numbers"
        error.hint = "where(condition, a, b) chooses inside a formula"
        raise
    return program._replace(guards=())


def _is_analytic(program: Program) -> bool:
    """Return whether all operations on complex numbers are analytic."""
    return not any(
        e.primitive is from_parts or (e.primitive.numbers == "complex" and any(map(arrays.is_complex, e.inputs)))
        for e in program.equations
    )
