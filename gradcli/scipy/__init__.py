"""SciPy with differentiable functions, as `autograd.scipy`."""

from gradcli.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
