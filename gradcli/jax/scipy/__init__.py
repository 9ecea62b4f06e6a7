"""`jax.scipy`: functions and distributions of SciPy, for tensors and with tensors as results."""

from gradcli.jax.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
