import jax
import jax.numpy as jnp

def F(z, a):
    x, y = z
    return jnp.array([x**2 + y**2 - a, x - y**3])

def solve(a):
    z = jnp.array([1.0, 0.8])
    for _ in range(5):
        J = jax.jacfwd(F)(z, a)
        z = z - jnp.linalg.solve(J, F(z, a))
    return z.sum()
