from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, vmap


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def _(primals, tangents):
    (x,) = primals
    (xd,) = tangents
    ans = log1pexp(x)
    return ans, (1 - 1 / (1 + jnp.exp(x))) * xd


show(
    grad(log1pexp)(100.0),
    jit(grad(log1pexp))(100.0),
    vmap(grad(log1pexp))(jnp.arange(3.0)),
    grad(grad(log1pexp))(1.0),
    jax.jvp(log1pexp, (3.0,), (1.0,)),
)


@jax.custom_jvp
def f(x, y):
    return jnp.sin(x) * y


f.defjvps(lambda xd, ans, x, y: jnp.cos(x) * xd * y, lambda yd, ans, x, y: jnp.sin(x) * yd)
show(f(2.0, 3.0), grad(f)(2.0, 3.0), grad(f, 1)(2.0, 3.0))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def app(h, x):
    return h(x)


app.defvjp(lambda h, x: (h(x), x), lambda h, x, g: (5 * g * x,))
show(app(jnp.sin, 2.0), grad(app, 1)(jnp.sin, 2.0), grad(grad(app, 1), 1)(jnp.sin, 2.0))
