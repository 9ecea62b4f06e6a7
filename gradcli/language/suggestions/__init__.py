"""What may have been meant by a name that is not known? The hints of errors.

Begin with `unknown_names`.
"""
