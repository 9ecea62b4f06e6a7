"""The order of all kinds, from the inside out: which one reads an operation in which several meet.

A Tensor of a Jet of Batched numbers, all of them Recorded, is a program for many derivatives at once. A Dual, which
is a tensor with a tangent, hands its rules a Pair of tensors. An
Abstract stands for an array and is inside everything; patterns meet nothing but numbers and each other.
"""

ABSTRACT, RECORDED, BATCHED, JET, TENSOR, DUAL, PAIR, PATTERN = range(8)
