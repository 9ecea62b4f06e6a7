import jax
import jax.numpy as jnp

def k(x, y):
    return jnp.exp(-0.5 * (x - y) ** 2 / ell ** 2)

gram = jax.vmap(lambda x: jax.vmap(lambda y: k(x, y))(ys))(xs)
gram
