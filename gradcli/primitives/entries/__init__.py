"""Which functions does the language have? By subject, each entry with its value, derivative rule, domain and samples.

Begin with `arithmetic`.
"""
