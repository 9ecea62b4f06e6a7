"""What are functionals, the operations on functions? Integrals, sums, limits, roots, minima and the solutions of
differential equations: their values are found by iteration, and their derivatives are exact.

Begin with `body`, the function as a program, which `tracing` records, and `functional_calls`, which apply the
primitives. These are in `integrals`, `sums`, `roots` and `ode`, with the methods that compute the numbers.
"""
