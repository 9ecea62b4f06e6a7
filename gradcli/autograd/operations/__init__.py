"""What can be done with tensors beside their methods and the functions of the table? What PyTorch and NumPy have.

Begin with `tensor_functions`, which finds PyTorch's functions.
"""
