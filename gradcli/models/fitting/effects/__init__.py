"""What differs between the levels of a column? Parameters with a value for each level, and random effects.

Begin with `factor_problems` for the former, and with `mixed_fits` for the latter.
"""
