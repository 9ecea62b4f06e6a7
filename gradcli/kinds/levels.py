"""The nesting order of all kinds: the outermost one interprets an operation in which several meet.

Kinds are listed from the inside out. A Tensor of a Jet of Batched numbers, all of them Recorded, is a program for many
derivatives at once. A Dual, a tensor with a tangent, passes its rules a Pair of tensors. An Abstract stands for an
array and is inside everything; patterns meet only numbers and each other. A Traced value of the round of a loop is
outside of all others, which the round reads.
"""

ABSTRACT, RECORDED, BATCHED, JET, TENSOR, DUAL, PAIR, PATTERN, TRACED = range(9)
