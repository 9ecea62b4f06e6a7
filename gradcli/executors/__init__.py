"""Running a recorded program, each file in its own way."""
