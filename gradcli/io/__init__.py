"""Values from text and files, and results out: imports `gradcli.errors` and `gradcli.timing` alone."""
