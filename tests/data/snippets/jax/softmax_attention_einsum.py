import jax.numpy as jnp
from jax.nn import softmax

def attend(q, k, v):
    scores = jnp.einsum('qd,kd->qk', q, k) / jnp.sqrt(q.shape[-1])
    return jnp.einsum('qk,kd->qd', softmax(scores, axis=-1), v).sum()
