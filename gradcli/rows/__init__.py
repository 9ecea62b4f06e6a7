"""Evaluation of a program on the rows of tables: reading in blocks, evaluating and writing."""
