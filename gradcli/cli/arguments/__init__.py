"""From the words of a command line to programs, values of names, and tables.

Begin with `inputs`.
"""
