"""What is computed from samples of a quantity? Order statistics, covariances, interpolation and Fourier transforms.

Begin with `sampling`.
"""
