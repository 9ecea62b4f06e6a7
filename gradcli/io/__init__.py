"""Values from text and files, and results out: imports `gradcli.errors` alone."""
