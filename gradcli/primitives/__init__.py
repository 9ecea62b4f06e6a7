"""What is a primitive, and how is it applied to operands of any kind?

Begin with `bind`, the one place where a primitive meets its operands, and `primitive`, the type of the entries. The entries
themselves are in `entries`, by subject; `table` finds them by name.
"""
