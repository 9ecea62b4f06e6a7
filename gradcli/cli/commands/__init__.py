"""The commands, a file each: the options that a command takes, what it asks for, and what it prints.

Begin with `eval`.
"""
