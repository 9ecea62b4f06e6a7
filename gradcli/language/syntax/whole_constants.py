"""Constants whose value as floats is wrong, as whole numbers beyond 2**53 are rounded: those are computed exactly.

All others are left as they are written, as `2**100`, which a float is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from gradcli.language.syntax import tree
from gradcli.type_hints import Any

# Operations of whole numbers that have whole results.
OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "**": operator.pow, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
# Operations whose result depends on the last digits of their operands.
_OF_DIGITS = frozenset(["//", "%"])
# Bounds on the number of parts of a constant, its binary digits, and the operand of a factorial.
_MOST_PARTS, _MOST_BITS, _MOST_FACTORS = 64, 20_000, 1_000
# Numbers of this size have digits that a float has not.
_BEYOND = 2**53
_WRITTEN = (tree.Number, tree.Binary, tree.Unary, tree.Factorial)


class _Constant:
    """The whole number that a constant is, and the float that floats give for it."""

    def __init__(self, exact: int, rounded: float, is_large: bool) -> None:
        self.exact, self.rounded = exact, rounded
        # Whether a part of it has digits that a float has not.
        self.is_large = is_large or abs(exact) > _BEYOND

    def is_wrong(self) -> bool:
        """Return whether the float is not the nearest one."""
        try:
            return self.is_large and self.rounded != float(self.exact)
        except OverflowError:
            return False


def with_digits(node: tree.Binary) -> tree.Expression:
    """An operation, or the constant that it is where floats do not give it."""
    found = _constant(node)
    if found is None or not (found.is_wrong() or (found.is_large and node.operator in _OF_DIGITS)):
        return node
    return _number(node, found.exact)


def compared_with_digits(node: tree.Compare) -> tree.Compare:
    """A comparison, or one of small constants where floats do not compare these as whole numbers do."""
    if len(node.operands) != 2:
        return node
    left, right = map(_constant, node.operands)
    if left is None or right is None:
        return node
    compare = COMPARISONS[node.operators[0]]
    if compare(left.exact, right.exact) == compare(left.rounded, right.rounded):
        return node
    order = (left.exact > right.exact) - (left.exact < right.exact)
    return tree.Compare(node.span, node.operators, (_number(node, order), _number(node, 0)))


def _number(node: tree.Expression, value: int) -> tree.Expression:
    number = tree.Number(node.span, float(abs(value)), str(abs(value)))
    return number if value >= 0 else tree.Unary(node.span, "-", number)


def _constant(node: tree.SyntaxNode) -> _Constant | None:
    """The constant that an expression of few whole numbers is; None for any other."""
    waiting, parts = [node], []
    while waiting:
        part = waiting.pop()
        parts.append(part)
        if len(parts) > _MOST_PARTS or not isinstance(part, _WRITTEN):
            return None
        waiting += tree.children(part)
    found: dict[tree.SyntaxNode, _Constant] = {}
    # Operands come after their operations.
    for part in reversed(parts):
        value = _of_part(part, [found[child] for child in tree.children(part)])
        if value is None:
            return None
        found[part] = value
    return found[node]


def _of_part(part: tree.SyntaxNode, operands: list[_Constant]) -> _Constant | None:
    is_large = any(o.is_large for o in operands)
    exact = _exact(part, [o.exact for o in operands])
    if exact is None or exact.bit_length() > _MOST_BITS:
        return None
    if isinstance(part, tree.Number):
        return _Constant(exact, part.value, False)
    if isinstance(part, tree.Unary):
        return _Constant(exact, -operands[0].rounded if part.operator == "-" else operands[0].rounded, is_large)
    try:
        if isinstance(part, tree.Factorial):
            return _Constant(exact, math.gamma(operands[0].rounded + 1), is_large)
        assert isinstance(part, tree.Binary)
        return _Constant(exact, float(OPERATIONS[part.operator](*(o.rounded for o in operands))), is_large)
    except (OverflowError, ZeroDivisionError, ValueError):
        return _Constant(exact, math.nan, is_large)


def _exact(part: tree.SyntaxNode, operands: list[int]) -> int | None:
    """The whole number that a part of a constant is, by those of its operands; None where it is none."""
    if isinstance(part, tree.Number):
        if part.value < _BEYOND or not part.text:
            return int(part.value) if part.value.is_integer() else None
        # Imported here as few programs have such numbers.
        from decimal import Decimal

        number = Decimal(part.text.replace("_", ""))
        return int(number) if number.adjusted() < 400 and number == number.to_integral_value() else None
    if isinstance(part, tree.Unary):
        return {"+": operands[0], "-": -operands[0]}.get(part.operator)
    if isinstance(part, tree.Factorial):
        return math.factorial(operands[0]) if 0 <= operands[0] <= _MOST_FACTORS else None
    assert isinstance(part, tree.Binary)
    left, right = operands
    if part.operator == "**" and not (right >= 0 and right * left.bit_length() <= _MOST_BITS):
        return None
    if part.operator not in OPERATIONS or (part.operator in ("//", "%") and not right):
        return None
    result: int = OPERATIONS[part.operator](left, right)
    return result
