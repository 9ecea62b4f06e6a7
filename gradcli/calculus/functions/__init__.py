"""What is the derivative of a Python function? Gradients, Jacobians and maps of functions of arrays and of containers.

Begin with `composable_transforms`; the other files have the names and conventions of PyTorch and HIPS autograd.
"""
