"""How does a derivative come about: the steps of a run, their local derivatives, and the products that add up to each
gradient. Begin reading in `chain_rule`.
"""
