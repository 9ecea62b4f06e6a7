"""What does a fit minimise? The values of a model at rows of data, the costs of these, and their derivatives.

Begin with `problems`, the problem of one fit; `fit_problems` builds it from a model, data and settings.
"""
