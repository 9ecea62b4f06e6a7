"""The command line: a thin skin over the rest, which computes nothing itself."""
