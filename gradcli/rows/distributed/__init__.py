"""How are the rows of large tables divided into parts that a cluster computes, and a later run resumes?

Begin with `cluster`; `row_parts` has the parts of tables, and `dask_pool` the workers.
"""
