"""Which options does a command take, what does it compute, and what does it print? A file for each command.

Begin with `eval`.
"""
