"""The functions of the language, by subject: each entry has its value, derivative rule, domain and samples side by side.

Begin with `arithmetic`.
"""
