import jax
import jax.numpy as jnp

def loss(w, x, y):
    return (jnp.dot(w, x) - y) ** 2

def per_example_grad_norm(w, X, Y):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, X, Y)
    return jnp.sum(jnp.linalg.norm(grads, axis=1))
