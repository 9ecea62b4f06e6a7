"""How uncertain is a result? The uncertainties of inputs, propagated through a program, and their budget.

Begin with `propagation`.
"""
