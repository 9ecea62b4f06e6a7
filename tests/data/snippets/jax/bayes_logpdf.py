import jax.numpy as jnp
from jax.scipy.special import gammaln

def gamma_logpdf(x, alpha, beta):
    return alpha * jnp.log(beta) - gammaln(alpha) + (alpha - 1) * jnp.log(x) - beta * x

gamma_logpdf(x, alpha, beta).sum()
