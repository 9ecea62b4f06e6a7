"""Applies the operators of numbers and tensors, in expressions and in augmented assignments."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.language.interpreter import lost_digits, whole_numbers
from gradcli.language.interpreter.machine import Evaluator
from gradcli.language.interpreter.values import Value
from gradcli.language.operations import BINARY, COMPARE
from gradcli.language.syntax import tree

# The types of numbers that no input changes.
_PLAIN = frozenset([float, int])


def exact_result(machine: Evaluator, symbol: str, left: Value, right: Value) -> Value | None:
    """The result of an operator on whole numbers of which floats lack digits; None for all else."""
    if machine.scalars is not None or type(left) not in _PLAIN or type(right) not in _PLAIN:
        return None
    return whole_numbers.of_operator(symbol, left, right)


def applied(machine: Evaluator, node: tree.Binary | tree.Augment, left: Value, right: Value) -> Value:
    """The result of the operator of a node on numbers and tensors; whether it lost all digits is reported."""
    symbol, operation = node.operator, BINARY[node.operator]
    result = machine.apply(node, operation.name, operation, left, right)
    if machine.scalars is None:
        if symbol in ("%", "//"):
            lost_digits.examine(symbol, left, result, rolls=machine.rolls)
        elif symbol in ("+", "-") and not _are_given(machine, tree.children(node)):
            lost_digits.examine_sum(symbol, left, right, result)
    return result


def compared(machine: Evaluator, node: tree.Compare, symbol: str, left: Value, right: Value) -> Value:
    """The result of a comparison of numbers and tensors; whether it depends on digits that they lack is reported."""
    result = machine.apply(node, COMPARE[symbol].name, COMPARE[symbol], left, right)
    if machine.scalars is None and not _are_given(machine, node.operands):
        lost_digits.examine_comparison(symbol, left, right)
    return result


def _are_given(machine: Evaluator, operands: Sequence[tree.SyntaxNode]) -> bool:
    """Return whether all operands are inputs, or written as numbers, which count as exact."""
    return all(isinstance(o, tree.Number) or (isinstance(o, tree.Name) and o.id in machine.inputs) for o in operands)
