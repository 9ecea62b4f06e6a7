"""Uncertain inputs through a program: the combined uncertainty and its budget."""
