import jax.numpy as jnp

def safe_log1mexp(x):
    small = x < 0.6931
    xs = jnp.where(small, x, 1.0)
    xl = jnp.where(small, 1.0, x)
    return jnp.where(small, jnp.log(-jnp.expm1(-xs)), jnp.log1p(-jnp.exp(-xl))).sum()
