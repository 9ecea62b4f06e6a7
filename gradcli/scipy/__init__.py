"""SciPy with functions that tensors are recorded by, as `autograd.scipy` is."""

from gradcli.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
