import jax.numpy as jnp
from jax import lax

def cube_root(a):
    def cond(x):
        return jnp.abs(x ** 3 - a) > 1e-10

    def body(x):
        return x - (x ** 3 - a) / (3 * x ** 2)

    return lax.while_loop(cond, body, 1.0 + 0.0 * a)
