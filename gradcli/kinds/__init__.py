"""Kinds of operands other than plain numbers and arrays: batches, Taylor series, and series at singular points."""
