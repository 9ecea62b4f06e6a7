"""How is a loop kept as one equation, and what are its derivatives?

Begin with `rolled_loop`, the description of a loop whose round is a program of numbers or arrays; `loop_primitive` has the
primitive that runs it, with derivative rules that are loops again. `body_tracing` records a round. Machine code is
written by `loop_code` for rounds of numbers, and by `array_code` for those of arrays.
"""
