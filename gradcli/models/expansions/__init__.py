"""Taylor polynomials: coefficients, remainder, radius."""
