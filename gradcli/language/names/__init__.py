"""What do the names of a program mean? Which it reads and defines, and in which library's meaning.

Begin with `resolution`, what the tree of a program says of them, and `scope`, the questions that remain.
"""
