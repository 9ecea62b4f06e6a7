"""Input of values from text and files, and output of results."""
