import jax.numpy as jnp
from jax.scipy.special import logsumexp, xlogy, gammaln

def bound(log_w, n):
    return logsumexp(log_w) - jnp.log(len(log_w)) + jnp.sum(xlogy(n, n)) - gammaln(n.sum() + 1)
