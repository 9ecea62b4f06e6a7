"""What is the sum of a series? Finite and infinite sums, with an estimate or a bound of the error.

Begin with `series_sum`, the primitive, and `summation`, the numbers.
"""
