"""What does a node keep for its backward? Operands and results, packed by hooks, and masks of untaken elements.

Begin with `saved`.
"""
