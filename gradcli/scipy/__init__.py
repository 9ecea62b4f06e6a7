"""SciPy with differentiable functions, as `autograd.scipy`."""

from gradcli.scipy import fft, integrate, linalg, signal, special, stats

__all__ = ["fft", "integrate", "linalg", "signal", "special", "stats"]
