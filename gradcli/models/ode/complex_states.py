"""Equations of complex states and parameters, as equations of their real and imaginary parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from gradcli import arrays
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.language.differential_equations import DifferentialEquations
from gradcli.language.syntax.derivative_marks import PRIME
from gradcli.models.complex_inputs import AppendedSource, made_of_parts, taken_apart, with_parts


def complex_states(equations: DifferentialEquations, values: Mapping[str, Any]) -> list[str]:
    """The states that are complex: those of which one, or one of its derivatives, starts with a complex number."""
    bases = {s.rstrip(PRIME) for s in equations.states if s in values and arrays.is_complex(values[s])}
    return [state for state in equations.states if state.rstrip(PRIME) in bases]


def of_real_numbers(
    equations: DifferentialEquations, states: Collection[str], parameters: Collection[str] = ()
) -> DifferentialEquations:
    """The equations of the parts of the complex `states`, which read the parts of the complex `parameters`."""
    source = AppendedSource(equations.source)
    made = [made_of_parts(name, source) for name in (*states, *parameters)]
    # The derivatives that are no states themselves.
    rates = [rate for state, rate in zip(equations.states, equations.rates) if state in states and rate not in states]
    apart = [statement for rate in rates for statement in taken_apart(rate, source)]
    jumps = [
        dataclasses.replace(jump, statements=(*jump.statements, *(s for x in states for s in taken_apart(x, source))))
        for jump in equations.jumps
    ]
    return dataclasses.replace(
        equations,
        source=source.source,
        states=tuple(in_parts(equations.states, states)),
        rates=tuple(in_parts(equations.rates, {*states, *rates})),
        statements=(*made, *equations.statements, *apart),
        jumps=tuple(jumps),
        differentiated=equations.bases,
    )


def values_of_parts(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The values by name, with those of the parts of complex states and parameters."""
    of_names = {name: arrays.asarray(value, "complex128") for name, value in values.items() if name in names}
    return with_parts({**values, **of_names}, names)


def in_parts(names: Iterable[str], states: Collection[str]) -> Iterator[str]:
    """The names, with those of their parts in place of complex ones."""
    for name in names:
        yield from names_of_parts(name) if name in states else (name,)
