import jax
import jax.numpy as jnp

# Value function
value_fn = lambda theta, state: jnp.dot(theta, state)

def td_loss(theta, s_tm1, r_t, s_t):
  v_tm1 = value_fn(theta, s_tm1)
  target = r_t + value_fn(theta, s_t)
  return -0.5 * ((jax.lax.stop_gradient(target) - v_tm1) ** 2)
