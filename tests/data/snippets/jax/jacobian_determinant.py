import jax
import jax.numpy as jnp

def transform(x):
    return jnp.array([x[0] + a * jnp.sin(x[1]), x[1] * jnp.exp(x[0])])

J = jax.jacobian(transform)(x)
jnp.log(jnp.abs(jnp.linalg.det(J)))
