"""Which digits of a result are proved? The same evaluation in ball arithmetic.

Begin with `digits`, which raises the precision until the digits asked for are proved; `certify` says how many digits of a
float are right, and `enclosures` bounds a program over intervals of its inputs.
"""
