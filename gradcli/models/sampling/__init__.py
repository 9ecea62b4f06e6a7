"""How are draws from a log density made? The sampler, its adaptation, and what the draws say about their own quality.

Begin with `posterior_draws`, which has `sample`.
"""
