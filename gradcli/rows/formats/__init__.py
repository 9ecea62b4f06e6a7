"""How are tables of each format read in blocks of rows, and written? Delimited text, JSON lines, Parquet and Arrow.

Begin with `opening`, which finds the format, and `reading`, the readers; `writing` adds the columns of results.
"""
