"""Tables in and out: rows read in blocks, evaluated and written again."""
