"""How does a program become a formula? By symbolic simplification, and code generation in an output language.

Begin with `symbolic`, which derives and simplifies, `algebra`, the normal form, and `text_writer`, which all languages
share.
"""
