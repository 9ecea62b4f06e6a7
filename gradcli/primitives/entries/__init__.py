"""Which functions does the language have? By subject, each entry with its value, derivative rule, domain and samples.

Begin with `arithmetic`. The files here are imported at the start; those of the folders when one of their names is first
looked up.
"""
