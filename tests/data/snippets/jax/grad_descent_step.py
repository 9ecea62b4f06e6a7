import jax
import jax.numpy as jnp

def loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2)

g = jax.grad(loss)(w, x, y)
w_new = w - 0.1 * g
loss(w_new, x, y)
