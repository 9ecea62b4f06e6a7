"""Which derivatives are there of a function? Gradients, Jacobians, Hessians, derivatives of order N, and their checks.

Begin with `gradient`.
"""
