"""Ways to run a straight-line program: as it stands, as generated scalar code, over blocks of arrays."""
