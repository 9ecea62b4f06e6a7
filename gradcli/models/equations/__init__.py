"""Where do equations have roots? Search, all roots in a range, proved digits, and derivatives by constants.

Begin with `roots`.
"""
