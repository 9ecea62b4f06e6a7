"""Straight-line programs: the equations of a computation, which are checked, rewritten, printed and run."""
