"""How are numbers and arrays with proved digits computed? By the namespace of ball arithmetic, over FLINT's Arb.

Begin with `balls`, the numbers, and `flint_arrays`, the namespace; the other files are its functions by
subject, those of complex numbers in `complex_numbers`.
"""
