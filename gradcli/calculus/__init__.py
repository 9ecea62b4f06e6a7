"""Which derivatives are there of a function? Gradients, Jacobians, Hessians, derivatives of order N, and their checks.

Begin with `derivatives`, of tensors with a graph, and `higher_orders`; `functions` has derivatives of Python functions.
"""
