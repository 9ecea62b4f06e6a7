"""A counterpart of `math` for formulas of constants, in FLINT numbers at the precision current at the call."""

from __future__ import annotations

from typing import Any

from flint import arb, fmpq

from gradcli.arrays.flint.balls import Number, from_text

__all__ = ["from_text", "log", "ratio", "sqrt"]


def __getattr__(name: str) -> Number:
    if name == "pi":
        return arb.pi()
    if name == "e":
        return arb.const_e()
    raise AttributeError(name)


def sqrt(x: Any) -> Number:
    return arb(x).sqrt()


def log(x: Any) -> Number:
    return arb(x).log()


def ratio(numerator: int, denominator: int) -> Number:
    return fmpq(numerator, denominator)
