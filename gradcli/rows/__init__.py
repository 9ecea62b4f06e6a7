"""How is a program evaluated for each row of a table? In blocks, which are read, evaluated and written.

Begin with `pipeline`, the run over a table, and `row_programs`, which computes rows along recorded execution paths.
`formats` reads and writes tables, `distributed` divides them among the workers of a cluster.
"""
