import jax.numpy as jnp
from jax import grad, vmap

x = jnp.zeros((3, 3))
show(
    x.at[1, :].set(1.0),
    x.at[0].add(jnp.arange(3.0)),
    x.at[jnp.array([0, 0])].add(1.0),
    x.at[:, 1].set(5).at[0].multiply(2),
    x.at[1, 1].max(3.0),
    x.at[0].apply(jnp.cos),
    x.at[0].get(),
    jnp.arange(4).at[2].set(9),
    jnp.arange(4.0).at[1:].power(2),
    jnp.arange(4.0).at[1:].divide(2.0),
    x.at[jnp.array([True, False, True])].set(4.0),
)
show(
    grad(lambda v: jnp.sum(jnp.zeros(3).at[1].set(v) ** 2 * jnp.arange(3.0)))(2.0),
    grad(lambda x: jnp.sum(x.at[0].set(0.0) ** 2))(jnp.arange(1.0, 4.0)),
    vmap(lambda x, i: x.at[i].set(7.0), in_axes=(0, None))(jnp.ones((2, 3)), 1),
    vmap(lambda v: jnp.zeros(2).at[0].add(v))(jnp.arange(3.0)),
)
