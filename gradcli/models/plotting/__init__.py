"""Pictures of programs and data: what is to be drawn, and the ways to draw it."""
