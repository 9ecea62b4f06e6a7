"""Readings of a primitive beside the plain one: in batches, and as Taylor series."""
