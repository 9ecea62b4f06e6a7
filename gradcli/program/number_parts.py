"""Programs of complex scalars, computed by their real and imaginary parts, with the rules that a caller gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.comparisons import equal, logical_and, where
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Program, Variable

# Computes the result of a primitive from its operands, which are numbers and `Parts`.
Rule = Callable[..., Any]


class Parts(NamedTuple):
    """A complex number by its parts."""

    real: Any
    imag: Any


def both(x: Any) -> Parts:
    """The parts of a number."""
    return x if isinstance(x, Parts) else Parts(x, 0.0)


def computes_complex(program: Program) -> bool:
    """Return whether an operand or a result of an equation is complex."""
    return any(arrays.is_complex(a) for e in program.equations for a in (*e.inputs, e.output))


def outputs_by_parts(
    program: Program, inputs: Sequence[Any], rules: Mapping[str, Rule], refuse: Callable[[Primitive], Exception]
) -> list[Any]:
    """The outputs of a program of scalars for real inputs, in which each operation on a complex number is that of the
    rule of its primitive.

    Raises what `refuse` returns for a primitive without a rule.
    """
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
    for primitive, operands, params, output in program.equations:
        given = [known[a] if isinstance(a, Variable) else _constant(a) for a in operands]
        if not any(isinstance(x, Parts) for x in given) and not arrays.is_complex(output):
            known[output] = bind(primitive, given, params)
            continue
        rule = rules.get(primitive.name)
        if rule is None:
            raise refuse(primitive)
        known[output] = rule(*given, **params)
    return [known[a] if isinstance(a, Variable) else a for a in program.outputs]


def _constant(atom: Atom) -> Any:
    return Parts(_part(atom.real), _part(atom.imag)) if arrays.is_complex(atom) else atom


def _part(x: Any) -> Any:
    """A part of a number as a float; a ball stays a ball."""
    return x if is_exact() and arrays.to_numpy(x).dtype != "float64" else float(x)


# Rules that split, join or select numbers, and therefore make no rounding errors.
SELECTING_RULES: dict[str, Rule] = {
    "complex": lambda a, b: Parts(a, b),
    "real_part": lambda x: both(x).real,
    "imaginary_part": lambda x: both(x).imag,
    "where": lambda condition, x, y: Parts(*(where(condition, a, b) for a, b in zip(both(x), both(y)))),
    "equal": lambda x, y: logical_and(*map(equal, both(x), both(y))),
}
