"""How accurate are the estimates at a minimum? Covariances, standard errors, and goodness of fit.

Begin with `inference`.
"""
