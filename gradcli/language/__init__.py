"""How is the text of a program understood and run? Its syntax, its names, its stable forms, and the interpreter.

Begin with `parsing`, from text to a tree, and `interpreter.run`, from the tree to a value.
"""
