import jax
import jax.numpy as jnp
from jax import grad, vmap


@jax.custom_vjp
def clip_gradient(lo, hi, x):
    return x


def fwd(lo, hi, x):
    return x, (lo, hi)


def bwd(res, g):
    lo, hi = res
    return (None, None, jnp.clip(g, lo, hi))


clip_gradient.defvjp(fwd, bwd)
show(vmap(grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x))))(jnp.linspace(0, 6, 5)))
show(grad(lambda x: jnp.sum(3 * clip_gradient(-1.0, 1.0, x)))(jnp.ones(2)))
