import jax
import jax.numpy as jnp

def potential(q):
    return 0.5 * jnp.sum(q ** 2) + 0.1 * q[0] ** 2 * q[1]

def leapfrog(q, p, eps, n_steps=4):
    grad_U = jax.grad(potential)
    p = p - 0.5 * eps * grad_U(q)
    for i in range(n_steps):
        q = q + eps * p
        if i != n_steps - 1:
            p = p - eps * grad_U(q)
    p = p - 0.5 * eps * grad_U(q)
    return jnp.sum(p ** 2) / 2 + potential(q)
