"""The graph of a program in the formats that people look at: one file for each."""
