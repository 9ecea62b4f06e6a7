"""A model fitted to data: the estimates, what they are worth, and what can be said of the fit."""
