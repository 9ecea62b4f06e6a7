"""Operations on functions, whose values are found by iteration and whose derivatives are exact: integrals, roots.

`body` has the function as a program, `tracing` records it, and each functional is a primitive in a file of its own;
`quadrature` and its neighbours compute the numbers.
"""
