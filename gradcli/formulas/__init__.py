"""A straight-line program as a formula: its algebra, its short forms, and the languages that it is written in."""
