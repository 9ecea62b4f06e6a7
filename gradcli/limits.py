"""How much a program may do before it is stopped, where nobody says otherwise."""

MAX_STEPS = 2_000_000
# Elements of all arrays that one run computes: 3.2 GB in float64, if it kept them all.
MAX_ELEMENTS = 400_000_000
# Calls of functions within calls.
MAX_DEPTH = 100_000
