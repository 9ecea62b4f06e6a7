"""The graph of a program in the formats that people and programs look at: one file for each."""
