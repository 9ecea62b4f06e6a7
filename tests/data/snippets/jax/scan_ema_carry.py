import jax
import jax.numpy as jnp

def ema(xs, alpha):
    def step(carry, x):
        new = alpha * x + (1 - alpha) * carry
        return new, new
    last, hist = jax.lax.scan(step, xs[0], xs[1:])
    return last + jnp.var(hist)
