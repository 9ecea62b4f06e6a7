"""Which rows are worth measuring? Optimal designs of experiments.

Begin with `optimal_designs`.
"""
