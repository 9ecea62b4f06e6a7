"""How is a command line completed by the Tab key? Scripts for shells, written from the declarations of the options.

Begin with `completion_data.py`; `completion_scripts.py` writes what it has in the language of each shell.
"""
