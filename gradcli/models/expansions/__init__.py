"""Taylor polynomials: coefficients, bounds of the remainder, and radius of convergence."""
