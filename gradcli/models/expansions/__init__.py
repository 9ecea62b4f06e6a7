"""What is the Taylor polynomial of a program? Its coefficients, bounds of the remainder, and radius of convergence.

Begin with `power_series`.
"""
