"""Rewrites roots of sums of squares in generated code so that the squares do not overflow or underflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from gradcli import arrays, limits
from gradcli.formulas.writing.rewriting import Rewriter, finite_number
from gradcli.formulas.writing.text_writer import Language
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply
from gradcli.primitives.entries.comparisons import equal, where
from gradcli.primitives.entries.elementwise.trigonometric import hypot
from gradcli.primitives.entries.powers import general_power, rsqrt, sqrt, whole_power
from gradcli.primitives.entries.reductions import SIGNATURE, sum_
from gradcli.primitives.entries.statistics import flat_sqrt
from gradcli.primitives.primitive import Primitive, not_implemented
from gradcli.program.ir import Atom, Equation, Program, Variable

# Root of the sum of squares over axes; only generated code uses this primitive, programs compute it by its parts.
_LACKING = not_implemented("formulas alone have this function")
norm = Primitive(
    "norm", SIGNATURE, "root of the sum of the squares over the axes",
    vjp=None, jet=_LACKING, batch=_LACKING,
    derivative="g*x/norm(x)",
)  # fmt: skip
# Sums of more terms are left as they are.
_MOST_TERMS = 100
# Cost of one term of a sum, in eighths of a step.
_TERM = 16


def without_squares(program: Program, language: Language, *, own: bool, read: bool = False) -> Program:
    """`program` with sqrt(x**2 + y**2) as hypot(x, y), and a/(x**2 + y**2) as two divisions by it.

    This holds for any number of terms and for sums over axes of tensors. A language without hypot gets the operands
    scaled by their size. With `own`, the value itself contains such sums and overflows anyway, so that its derivatives
    keep them. With `read`, the text is for reading only, and sqrt(x**2 + 1), sums with factors, whose roots would
    stand before the operands, and quotients by sums are kept too."""
    return _Roots(language, own=own, read=read).rewritten(program)


def has_squares(program: Program) -> bool:
    """Return whether a program takes or divides by roots of sums of squares, none of which are scaled."""
    finder = _Finder()
    finder.rewritten(program)
    return finder.found and not finder.scaled


class _Squares(Rewriter):
    """Recognises sums of squares."""

    def terms(self, atom: Atom) -> Sequence[tuple[float, Atom]]:
        """The terms (f, x) of a sum of two or more squares (f*x)**2; empty for anything else."""
        found: list[tuple[float, Atom]] = []
        constant = 0.0
        waiting = [(1.0, atom)]
        while waiting:
            if len(waiting) + len(found) > _MOST_TERMS:
                return []
            factor, atom = waiting.pop()
            number = finite_number(atom)
            if number is not None:
                constant += factor * number
                continue
            square = self.square(atom)
            if square is not None:
                found.append((math.sqrt(factor), square))
                continue
            parts = self._parts(atom, factor)
            if not parts:
                return []
            waiting += parts
        limits.charge_steps(_TERM * len(found))
        if constant < 0 or not found or not 0 < min(f for f, _ in found) <= max(f for f, _ in found) < math.inf:
            return []
        found += [(math.sqrt(constant), 1.0)] if constant else []
        return found if len(found) > 1 else []

    def square(self, atom: Atom) -> Atom | None:
        """The operand whose square an atom is, else None."""
        made = self.defining_equation(atom, whole_power, multiply, divide)
        if made is None:
            return None
        if made.primitive is whole_power:
            return made.inputs[0] if made.params["n"] == 2 else None
        first, second = made.inputs
        if made.primitive is multiply and first is second:
            return first
        squares = self.square(first), self.square(second)
        return None if squares[0] is None or squares[1] is None else self.apply(made.primitive, *squares)

    def _parts(self, atom: Atom, factor: float) -> Sequence[tuple[float, Atom]]:
        made = self.defining_equation(atom, add, multiply, divide)
        if made is None:
            return []
        first, second = made.inputs
        if made.primitive is add:
            return (factor, second), (factor, first)
        if made.primitive is multiply and isinstance(first, Variable):
            first, second = second, first
        number = finite_number(second if made.primitive is divide else first)
        if number is None or number <= 0:
            return []
        return ((factor / number, first),) if made.primitive is divide else ((factor * number, second),)

    def square_sum(self, atom: Atom) -> tuple[Equation, Atom] | None:
        """The sum over axes that computes an atom and the operand whose squares it adds; None for anything else."""
        made = self.defining_equation(atom, sum_)
        square = None if made is None else self.square(made.inputs[0])
        return None if made is None or square is None else (made, square)

    def is_scaled(self, atom: Atom) -> bool:
        """Return whether an operand is divided by its size already, as the function norm does."""
        made = self.defining_equation(atom, divide)
        return made is not None and self.defining_equation(made.inputs[1], where) is not None


class _Finder(_Squares):
    def __init__(self) -> None:
        super().__init__()
        self.found = False
        self.scaled = False

    def replacement(self, equation: Equation) -> Atom | None:
        self.scaled = self.scaled or equation.primitive is hypot
        # `flat_sqrt` is left out: std, which takes it, does not overflow.
        place = {sqrt: 0, rsqrt: 0, general_power: 0, divide: 1}.get(equation.primitive)
        if place is not None:
            # A root mean square divides the sum of squares by its count.
            mean = self.defining_equation(equation.inputs[place], divide)
            atom = equation.inputs[place] if mean is None or isinstance(mean.inputs[1], Variable) else mean.inputs[0]
            over_axes = self.square_sum(atom)
            is_scaled = over_axes is not None and self.is_scaled(over_axes[1])
            self.scaled = self.scaled or is_scaled
            self.found = self.found or bool(self.terms(atom)) or (over_axes is not None and not is_scaled)
        return None


class _Roots(_Squares):
    def __init__(self, language: Language, *, own: bool, read: bool) -> None:
        super().__init__()
        self.native = language.writes(hypot)
        self.of_tensors = language.tensors and not own
        self.own = own
        self.read = read
        # The operands (in the sense of hypot) of each root.
        self.roots: dict[Variable, Sequence[Atom]] = {}

    def replacement(self, equation: Equation) -> Atom | None:
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is hypot:
            operands = [t for a in inputs for t in (self._of_root(a) or [a])]
            self.roots[equation.output] = operands
            return None if self.native else self._scaled_root(operands)
        if primitive is flat_sqrt:
            return self._root(inputs[0])
        if self.own:
            return None
        if primitive is sqrt:
            return self._root(inputs[0])
        if primitive is rsqrt:
            root = self._root(inputs[0])
            return None if root is None else self.apply(divide, 1.0, root)
        if primitive is general_power:
            return self._power(*inputs)
        if primitive is divide and finite_number(inputs[0]) is None:
            return self._quotient(*inputs)
        return None

    def _quotient(self, above: Atom, below: Atom) -> Atom | None:
        """A quotient by a power of a root as repeated divisions, each paired with a factor of similar size."""
        power, n = self.defining_equation(below, whole_power), 2
        root: Atom | None = None
        if power is not None and power.inputs[0] in self.roots and power.params["n"] == 3:
            root, n = power.inputs[0], 3
        elif not self.read:
            root = self._root(below) if self.terms(below) else self._input_squared(below)
        if root is None:
            return None
        found: list[Atom] = []
        for factor in self.factors(above):
            square = self.square(factor) or (self._root(factor) if self.terms(factor) else None)
            if square is not None and n > 1:
                found.append(self.apply(whole_power, self.apply(divide, square, root), n=2.0))
                n -= 2
            elif isinstance(factor, Variable) and n:
                found.append(self.apply(divide, factor, root))
                n -= 1
            else:
                found.append(factor)
        product = reduce(lambda a, b: self.apply(multiply, a, b), found)
        return reduce(lambda a, b: self.apply(divide, a, b), [root] * n, product)

    def _power(self, base: Atom, exponent: Atom) -> Atom | None:
        n = self.number(exponent)
        root = self._root(base) if n is not None and (2 * n).is_integer() and not n.is_integer() else None
        return None if root is None or n is None else self.apply(whole_power, root, n=2 * n)

    def _root(self, atom: Atom) -> Atom | None:
        terms = self.terms(atom)
        if terms:
            if self.read and (self._is_plain(terms) or any(factor != 1 for factor, _ in terms)):
                return None
            operands = [self._times(factor, base) for factor, base in terms]
            root = reduce(self._hypotenuse, operands) if self.native else self._scaled_root(operands)
            self.roots[root] = operands
            return root
        # std takes the root of a sum over its count.
        factor, inner = self._without_factor(atom)
        over_axes = self.square_sum(inner) if self.of_tensors else None
        if over_axes is None or (self.read and factor != 1):
            return None
        made, square = over_axes
        if self.is_scaled(square):
            return None
        return self._times(math.sqrt(factor), self.call(norm, (square,), made.params, made.output.shape))

    def _without_factor(self, atom: Atom) -> tuple[float, Atom]:
        """An atom as (f, x), where it is a positive multiple f*x."""
        parts = self._parts(atom, 1.0)
        return parts[0] if len(parts) == 1 else (1.0, atom)

    def _is_plain(self, terms: Sequence[tuple[float, Atom]]) -> bool:
        """Return whether the terms are inputs and at least one number, as in sqrt(x**2 + 1)."""
        bases = [base for _, base in terms if isinstance(base, Variable)]
        return len(bases) < len(terms) and not any(base in self.made for base in bases)

    def _input_squared(self, atom: Atom) -> Atom | None:
        """The input whose square an atom is: a/x**2 is 0 for large x where a/x/x is not."""
        square = self.square(atom)
        return square if isinstance(square, Variable) and square not in self.made else None

    def _hypotenuse(self, first: Atom, second: Atom) -> Variable:
        return self.apply(hypot, first, second)

    def _times(self, factor: float, base: Atom) -> Atom:
        if not isinstance(base, Variable):
            return factor * float(base)
        return base if factor == 1 else self.apply(multiply, factor, base)

    def _of_root(self, atom: Atom) -> Sequence[Atom]:
        return self.roots.get(atom, []) if isinstance(atom, Variable) else []

    def _scaled_root(self, operands: Sequence[Atom]) -> Variable:
        """The root with operands scaled by the sum of their magnitudes; that sum is the result where it is 0 or
        infinite."""
        size = reduce(self._sum, map(self._magnitude, operands))
        squares = (self.apply(whole_power, self.apply(divide, o, size), n=2.0) for o in operands)
        root = self.apply(multiply, size, self.apply(sqrt, reduce(self._sum, squares)))
        alone = self.apply(equal, size, self.apply(multiply, 2.0, size), dtype="bool")
        found = self.apply(where, alone, size, root)
        self.roots[found] = operands
        return found

    def _magnitude(self, operand: Atom) -> Atom:
        return self.apply(absolute, operand) if isinstance(operand, Variable) else abs(float(operand))

    def _sum(self, first: Atom, second: Atom) -> Any:
        if not isinstance(first, Variable) and not isinstance(second, Variable):
            return arrays.to_numpy(first).item() + arrays.to_numpy(second).item()
        return self.apply(add, first, second)
