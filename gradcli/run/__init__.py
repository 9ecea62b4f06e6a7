"""One run of a program: from bindings to results, recorded and compiled programs, diagnosis, the graph."""
