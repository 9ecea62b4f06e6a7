import jax.numpy as jnp
from jax import grad, lax


def newton(f, x0, n=8):
    return lax.fori_loop(0, n, lambda i, x: x - f(x) / grad(f)(x), x0)


show(newton(lambda x: x**3 - 2, 1.0), grad(lambda a: newton(lambda x: x**3 - a, 1.0))(2.0))


def rk4(f, y0, ts, *a):
    def step(y, t):
        t0, h = t
        k1 = f(y, t0, *a)
        k2 = f(y + h * k1 / 2, t0 + h / 2, *a)
        k3 = f(y + h * k2 / 2, t0 + h / 2, *a)
        k4 = f(y + h * k3, t0 + h, *a)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return lax.scan(step, y0, (ts[:-1], jnp.diff(ts)))[1]


pend = lambda y, t, g: jnp.array([y[1], -g * jnp.sin(y[0])])
ts = jnp.linspace(0, 1.0, 6)
show(rk4(pend, jnp.array([1.0, 0.0]), ts, 9.8), grad(lambda g: rk4(pend, jnp.array([1.0, 0.0]), ts, g)[-1, 0])(9.8))
