"""What does Python call again and again? Compiled programs and functions, from `gradcli.compile`.

Begin with `compiling`; `computation` is what programs and functions have in common, `programs` adds what a text has, and
`confined_programs` runs each call in a process whose time and memory are limited.
"""
