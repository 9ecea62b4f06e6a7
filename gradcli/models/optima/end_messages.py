"""The messages that say how a search ended, worded for minima and for maxima."""

from __future__ import annotations

VANISHES = "the gradient vanishes"
STUCK = "no step lowers the objective, and its gradient does not vanish: there may be a kink"
UNBOUNDED = "the objective falls without a bound"
SLOW_DESCENT = "the objective falls on and on, ever more slowly"
KINK = "a minimum at a kink: the objective is not smooth there, and 0 is among its subgradients"
FALLS_FROM_FLAT = "the gradient vanishes, but the objective falls along a direction without curvature"
FALLS_FROM_KINK = "the objective is not smooth there, and falls from there"
SADDLE = "the gradient vanishes, but the point is a saddle"
BY_BOUNDS = "a minimum that bounds hold"

_OF_MAXIMA = {
    STUCK: "no step raises the objective, and its gradient does not vanish: there may be a kink",
    UNBOUNDED: "the objective rises without a bound",
    SLOW_DESCENT: "the objective rises on and on, ever more slowly",
    KINK: "a maximum at a kink: the objective is not smooth there, and 0 is among its subgradients",
    FALLS_FROM_FLAT: "the gradient vanishes, but the objective rises along a direction without curvature",
    FALLS_FROM_KINK: "the objective is not smooth there, and rises from there",
    BY_BOUNDS: "a maximum that bounds hold",
}


def worded(message: str, sign: float) -> str:
    """A message of a search, worded for a maximum where the sign of the objective is negative (searches minimise its
    negative)."""
    return _OF_MAXIMA.get(message, message) if sign < 0 else message


def extremum(sign: float) -> str:
    """The word for what is searched for."""
    return "maximum" if sign < 0 else "minimum"
