import jax.numpy as jnp

u = u.at[0].set(left)
u = u.at[-1].set(0.0)
u = u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
jnp.sum(u ** 2)
