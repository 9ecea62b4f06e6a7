"""Symbolic simplification of straight-line programs, and code generation for the languages they are written in."""
