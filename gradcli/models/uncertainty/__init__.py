"""Propagation of input uncertainties through a program: the combined standard uncertainty and its budget."""
