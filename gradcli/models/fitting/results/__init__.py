"""What does a fit report? Its estimates, statistics and warnings, as members of an object and as tables.

Begin with `fit_results`.
"""
