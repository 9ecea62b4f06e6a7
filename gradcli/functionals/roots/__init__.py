"""Where is a function zero or least? Searches in floats and in balls, and the derivatives of what they find.

Begin with `root_primitives`, and with `searches`, which find the numbers.
"""
