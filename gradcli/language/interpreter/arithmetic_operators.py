"""Applies the operators of numbers and tensors, in expressions and in augmented assignments."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.autograd.tensor import Tensor
from gradcli.language.interpreter import lost_digits, whole_numbers
from gradcli.language.interpreter.machine import Evaluator
from gradcli.language.interpreter.values import Value
from gradcli.language.operations import BINARY, COMPARE, EXACT_INTEGERS
from gradcli.language.syntax import tree

# The types of operands: floats alone, and those of which one is an exact whole number.
_FLOATS, _WITH_INTEGERS = (float, float), frozenset([(int, int), (int, float), (float, int)])
_SUMS = frozenset("+-")


def exact_result(machine: Evaluator, symbol: str, left: Value, right: Value) -> Value | None:
    """The result of an operator on whole numbers of which floats lack digits; None for all else."""
    kinds = type(left), type(right)
    if kinds == _FLOATS:
        # Most results are small, which floats have exactly.
        if symbol in _SUMS:
            if abs(left) + abs(right) <= EXACT_INTEGERS:
                return None
        elif symbol == "*":
            if abs(left * right) <= EXACT_INTEGERS:
                return None
        elif symbol != "**":
            return None
    elif kinds not in _WITH_INTEGERS:
        return None
    return None if machine.scalars is not None else whole_numbers.of_operator(symbol, left, right)


def applied(machine: Evaluator, node: tree.Binary | tree.Augment, left: Value, right: Value) -> Value:
    """The result of the operator of a node on numbers and tensors; whether it lost all digits is reported."""
    symbol, operation = node.operator, BINARY[node.operator]
    result = machine.apply(node, operation.name, operation, left, right)
    if symbol in _SUMS:
        if not (type(result) is Tensor and result.requires_grad) and lost_digits.cancels(left, right, result):
            _report(machine, symbol, left, tree.children(node))
    elif symbol in ("%", "//") and machine.scalars is None:
        lost_digits.examine(symbol, left, result, rolls=machine.rolls)
    return result


def compared(machine: Evaluator, node: tree.Compare, symbol: str, left: Value, right: Value) -> Value:
    """The result of a comparison of numbers and tensors; whether it depends on digits that they lack is reported."""
    result = machine.apply(node, COMPARE[symbol].name, COMPARE[symbol], left, right)
    if lost_digits.differs_by_rounding(left, right):
        _report(machine, symbol, left, node.operands)
    return result


def _report(machine: Evaluator, symbol: str, number: Value, operands: Sequence[tree.SyntaxNode]) -> None:
    """Report an operation that depends on lost digits, unless all operands are inputs, or written as numbers, which count
    as exact."""
    exact = (isinstance(o, tree.Number) or (isinstance(o, tree.Name) and o.id in machine.inputs) for o in operands)
    if machine.scalars is None and not all(exact):
        lost_digits.report(symbol, number)
