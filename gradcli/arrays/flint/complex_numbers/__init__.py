"""Which functions of complex numbers have proved digits? Those of numbers, of arrays, and of matrices.

Begin with `flint_complex_arrays`, the namespace, which looks the functions up by name.
"""
