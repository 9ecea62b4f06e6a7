"""How is a program drawn? Sampling, charts, and their backends Matplotlib and plotext.

Begin with `pictures`.
"""
