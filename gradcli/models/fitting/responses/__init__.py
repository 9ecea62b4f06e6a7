"""Which responses can a model have beside a real column? Densities, categories, complex numbers, several, trajectories.

Begin with `density_problems`: most of the others are problems of densities.
"""
