"""Which special functions does the language have? The error, gamma and beta functions, Bessel functions, elliptic
integrals, orthogonal polynomials and the like, of elements.

Begin with `special`; `numerical_partials` has the derivatives without a closed form.
"""
