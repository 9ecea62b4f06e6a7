"""How are the fits of many groups of rows written, summarised, and divided among workers?

Begin with `group_parts`.
"""
