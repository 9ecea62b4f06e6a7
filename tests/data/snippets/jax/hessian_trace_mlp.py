import jax
import jax.numpy as jnp

def f(x, w):
    return jnp.sum(jnp.tanh(w @ x))

def laplacian(x, w):
    H = jax.hessian(f)(x, w)
    return jnp.trace(H)
