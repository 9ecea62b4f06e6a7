import jax
import jax.numpy as jnp

def loss_fn(params, x, y):
    h = x
    for w in params[:-1]:
        h = jax.nn.relu(h @ w)
    pred = h @ params[-1]
    return jnp.mean(jnp.square(pred - y))
