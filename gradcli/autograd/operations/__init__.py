"""What can be done with tensors beside the functions of the table? PyTorch's methods and functions, NumPy's protocols.

Begin with `tensor_surface`, the methods.
"""
