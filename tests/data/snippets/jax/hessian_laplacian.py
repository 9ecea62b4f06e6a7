import jax
import jax.numpy as jnp

def f(x):
    return jnp.exp(-jnp.sum(x ** 2)) * x[0]

def laplacian(x):
    return jnp.trace(jax.hessian(f)(x))
