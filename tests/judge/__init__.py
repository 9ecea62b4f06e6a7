"""The independent judge: programs, their derivatives and Jacobians in mpmath, with as many digits as they need.

It shares nothing with what it judges but the text of a program as a tree and what its names mean: values by `evaluate`
on numbers of mpmath and arrays of them with `functions`, derivatives by `differences` of values.
"""

from tests.judge.differences import Judge, NotJudgedError

__all__ = ["Judge", "NotJudgedError"]
