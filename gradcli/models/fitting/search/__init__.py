"""Where is the minimum? Searches from given and from generated starts, with robust losses and for many groups at once.

Begin with `estimation`, the way from start values to a verified minimum.
"""
