"""What do the output languages share? The writer of texts, names of variables, documents, and stable forms of formulas.

Begin with `text_writer`, in which a language is declared.
"""
