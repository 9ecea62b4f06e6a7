"""Are derivatives right? Comparisons with finite differences, in the terms of gradcli and of PyTorch.

Begin with `gradcheck`.
"""
