"""What are the formulas of derivatives by complex numbers? Of holomorphic programs, of conjugates, moduli and parts.

Begin with `complex_formulas`.
"""
