"""Operations on functions, whose values are found by iteration and whose derivatives are exact: integrals, sums, limits,
roots, minima and differential equations.

`body` has the function as a program, `tracing` records it, and each functional is a primitive in a file of its own;
`functional_calls` applies them. `quadrature` and its neighbours compute the numbers; `ode` solves differential equations.
"""
