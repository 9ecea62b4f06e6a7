"""Roots of equations, searched for, proved where a bracket is given, and how they depend on constants."""
