"""What is a recorded computation? A straight-line program of equations, which is checked, rewritten, printed and run.

Begin with `ir`, the program, `record`, which makes one of a run, and `passes`, which shorten it.
"""
