"""Which calls are neither functions of the table nor of the program? Derivatives, function transforms, functionals and
Python's built-in functions.

Begin with `python_functions`; `calls` beside this folder imports each file when a program first calls such a function.
"""
