"""Which names mean something else, or exist only, in one library?

Begin with `library_variants`.
"""
