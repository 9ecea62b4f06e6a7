"""How is a loop kept as one equation, and what are its derivatives?

Begin with `rolled_loop`, the description of a loop whose round is a program of scalars; `loop_primitive` has the
primitive that runs it, with derivative rules that are loops again. `body_tracing` records a round.
"""
