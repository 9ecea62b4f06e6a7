"""Programs without control flow: what a computation did, as equations that can be checked, rewritten, printed and run."""
