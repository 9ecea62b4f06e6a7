"""How does a derivative come about? By the steps of a run, their local derivatives, and the products that add up to
each gradient.

Begin with `chain_rule`.
"""
