"""Run a program: bindings to results, recorded and compiled programs, diagnosis of results, and the graph."""
