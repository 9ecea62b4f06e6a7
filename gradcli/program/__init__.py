"""Programs without control flow: what a computation did, as equations to be checked, rewritten, printed and run."""
