"""The least or greatest value of a program, with and without constraints."""
