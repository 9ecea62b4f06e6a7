"""How is a syntax tree run? From bindings to tensors.

Begin with `run`; `machine` has what is known while a program runs, and the other files go by kinds of nodes. The
folders are imported by programs that need them: `builtin_calls`, and `rolled` loops.
"""
