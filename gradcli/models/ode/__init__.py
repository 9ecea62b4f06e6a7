"""Which values, and which derivatives, has the solution of a system of differential equations?

Begin with `initial_values`, which takes a request to its table; `trajectories` follows a solution over its jumps.
"""
