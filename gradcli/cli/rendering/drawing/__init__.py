"""The graph of a program in the formats of `gradcli graph`, a file each.

Begin with `labels`, what every format draws.
"""
