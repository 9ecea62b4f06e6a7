"""The graph of a program in the formats of `gradcli graph`, a file each.

Begin with `node_labels`, which every format draws.
"""
