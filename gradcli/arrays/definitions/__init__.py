"""What is a function that an array library lacks, or has with other values at the edges, in functions that it has?

Begin with `common_definitions`; the other files go by subject.
"""
