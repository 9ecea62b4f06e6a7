"""Roots of equations: search, all roots in a range, proved digits, and derivatives by constants."""
