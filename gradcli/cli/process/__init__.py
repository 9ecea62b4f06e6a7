"""What surrounds a command in its process? Streams, interrupts, limits, and the exit status.

Begin with `environment`, the streams and variables that a run sees; `main` of the package above starts it.
"""
