"""What can operands be besides numbers and arrays? Batches, Taylor series, and series at singular points.

Begin with `levels`, the order in which kinds nest, `batch` and `jets`; the other files are series at kinks and poles.
"""
