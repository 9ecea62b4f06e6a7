"""Model fitting: estimates parameters from data, with their standard errors, intervals and diagnostics."""
