"""What runs a program? Eager execution, generated scalar code, passes over blocks of arrays, or a library's compiler.

Begin with `executor_choice`, which chooses by the library of the arrays, and `cpu`, the executors for floats and NumPy.
"""
