"""How is a tensor made? From numbers, arrays and random numbers, with PyTorch's arguments.

Begin with `factory`.
"""
