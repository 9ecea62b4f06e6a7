"""Minima and maxima of programs, with and without constraints."""
