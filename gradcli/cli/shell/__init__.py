"""The interactive shell: the names of a session, what is typed, and the line editor.

Begin with `read_loop`. Evaluation goes through what `gradcli eval` uses, `:` commands through the commands themselves.
"""
