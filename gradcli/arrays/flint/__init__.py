"""The array namespace of ball arithmetic: numbers and arrays whose digits are proved, computed by FLINT's Arb.

Begin with `balls`, the numbers, and `flint_arrays`, the namespace; the other files are its functions by
subject, those of complex numbers in `complex_numbers`.
"""
