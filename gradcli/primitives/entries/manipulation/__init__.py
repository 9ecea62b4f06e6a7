"""Which functions make, split, gather and replace elements of tensors, beside those of `shape` and `indexing`?

Begin with `gather_scatter`.
"""
