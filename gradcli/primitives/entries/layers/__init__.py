"""Which layers and losses of neural networks does the language have? Those of `torch.nn.functional`.

Begin with `networks` and `losses`.
"""
