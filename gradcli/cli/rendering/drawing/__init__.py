"""How is the graph of a program drawn? A file for each format of `gradcli graph`.

Begin with `node_labels`, which every format draws.
"""
