"""What does the command line do? It parses options, calls the library, and prints results; it computes nothing itself.

Begin with `main`, and `command`, which calls one of `commands` with its parsed options.
"""
