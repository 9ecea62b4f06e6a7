"""How is a loop whose rounds compute with arrays written in LLVM IR?

Begin with `array_loop_code`. `array_plan` decides which results are stored, `array_views` tells where the elements of
views are, and `nest_code`, `product_code` and `element_code` write nests of loops, products of matrices and functions.
"""
