"""Where is a program least or greatest? Local and global minima, with and without constraints.

Begin with `minima`; `verdicts` says whether the end of a search is a minimum.
"""
