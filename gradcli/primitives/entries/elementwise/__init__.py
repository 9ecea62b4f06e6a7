"""Which elementwise functions does the language have, beside those of every start? Trigonometric, elementary, complex.

Begin with `trigonometric`.
"""
