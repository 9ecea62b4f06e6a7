"""How does a program become a formula? By symbolic simplification, and code generation in an output language.

Begin with `symbolic`, which derives and simplifies, and with `languages`, one of which writes the result.
"""
