"""`jax.scipy`: functions and distributions of SciPy, of tensors and giving tensors."""

from gradcli.jax.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
