"""What do the names of a program mean? Which it reads and defines, and in which library's meaning.

Begin with `scope`.
"""
