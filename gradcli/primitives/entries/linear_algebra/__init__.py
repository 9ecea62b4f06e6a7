"""Which functions of matrices does the language have, beside the products of `linear`?

Begin with `matrices`, then `decompositions`.
"""
