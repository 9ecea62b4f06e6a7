"""The process around a command: from the arguments to an exit status, its streams, interrupts and limits.

Begin with `environment`, the streams and variables that a run sees; `main` of the package above starts it.
"""
