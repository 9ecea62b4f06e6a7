import jax
import jax.numpy as jnp

one_hot = jax.nn.one_hot(labels, 3)
loss = -jnp.mean(jnp.sum(one_hot * jax.nn.log_softmax(logits), axis=-1))
loss
