"""How are values read, and results written? From text and files, and as JSON and files.

Begin with `variables`, the words `NAME=VALUE`, and `files`, the values from files.
"""
