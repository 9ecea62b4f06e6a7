"""Which parameters fit data best? Estimates, with standard errors, intervals and diagnostics.

Begin with `fit_execution`, the way of one fit, `problems`, what is minimised, and `estimation`, how.
"""
