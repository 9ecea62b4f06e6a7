"""How much a program may do before it is stopped, where nobody says otherwise."""

MAX_STEPS = 2_000_000
# Elements of all arrays that one run computes: 8 GB in float64.
MAX_ELEMENTS = 1_000_000_000
