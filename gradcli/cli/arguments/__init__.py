"""What do the words of a command line mean? Programs, values of names, and tables.

Begin with `inputs`.
"""
