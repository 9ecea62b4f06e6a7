"""Which parameters fit data best? Estimates, with standard errors, intervals and diagnostics.

Begin with `fit_execution`, the way of one fit from its request to its result. It reads the model (`notation`), builds
what is minimised (`problem`, and `responses` and `effects` for further kinds of models), finds the minimum (`search`),
says how accurate the estimates are (`statistics`), and reports that (`results`).
"""
