"""What is the integral of a function? Quadrature in floats, proved integrals in balls, and the derivatives of both.

Begin with `integral`, the primitive, and `integration`, the numbers.
"""
