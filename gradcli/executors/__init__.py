"""Executors: run a straight-line program primitive by primitive, as generated scalar code, or over blocks of arrays."""
