"""Where do expressions overflow, cancel or become 0/0, and which equal ones do not?

Begin with `stable_expressions`, which replaces expressions by the pairs of `stable_forms`, and `removable`, which takes limits.
"""
