"""The expression language: its syntax, its names, its stable forms, and the interpreter."""
