"""How does a loop of a program become one equation? Its body runs once, on traced values.

Begin with `rolled_loops`, loops of statements; `rolled_calls` has loops of functions. `loop_policy` beside this folder
decides which loops are rolled.
"""
