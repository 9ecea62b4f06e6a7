"""What does the text of a model say? Its response and formula, the density of its rows, and its random effects.

Begin with `model_texts`.
"""
