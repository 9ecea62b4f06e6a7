from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, lax


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, x_guess):
    def cond_fun(c):
        xp, x = c
        return jnp.abs(xp - x) > 1e-10

    def body(c):
        _, x = c
        return x, f(a, x)

    _, x = lax.while_loop(cond_fun, body, (x_guess, f(a, x_guess)))
    return x


def fwd(f, a, x0):
    x = fixed_point(f, a, x0)
    return x, (a, x)


def rev_iter(f, packed, u):
    a, x, xb = packed
    _, vjp_x = jax.vjp(lambda x: f(a, x), x)
    return xb + vjp_x(u)[0]


def rev(f, res, xb):
    a, x = res
    _, vjp_a = jax.vjp(lambda a: f(a, x), a)
    (ab,) = vjp_a(fixed_point(partial(rev_iter, f), (a, x, xb), xb))
    return ab, jnp.zeros_like(x)


fixed_point.defvjp(fwd, rev)
newton = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)
show(newton(2.0), grad(newton)(2.0), grad(grad(newton))(2.0))
