"""What does the interactive shell do with a line? It edits, reads and evaluates it, with the names of the session.

Begin with `read_loop`. Evaluation goes through what `gradcli eval` uses, `:` commands through the commands themselves.
"""
