from jax import value_and_grad
import jax.numpy as jnp

def f(w):
    return jnp.sum(jnp.sin(w * x)) + w[0] ** 3

value, grads = value_and_grad(f)(w)
value + 0.5 * jnp.sum(grads ** 2)
