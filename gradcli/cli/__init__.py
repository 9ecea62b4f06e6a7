"""The command line interface: parses options, calls the library, and prints results; it computes nothing itself."""
