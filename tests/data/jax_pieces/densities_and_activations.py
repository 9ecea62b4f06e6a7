import jax
import jax.numpy as jnp
from jax import grad, lax
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

show(
    norm.logpdf(1.0, 0.0, 2.0),
    grad(norm.logpdf)(1.0),
    logsumexp(jnp.array([1.0, 2.0])),
    jax.nn.softmax(jnp.arange(3.0)),
    jax.nn.gelu(1.0),
    jax.nn.one_hot(jnp.array([0, 2]), 3),
    jax.scipy.stats.multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2)),
    jnp.linalg.norm(jnp.arange(3.0)),
    jnp.linalg.slogdet(jnp.eye(2) * 3),
    lax.stop_gradient(3.0),
    grad(lambda x: x * lax.stop_gradient(x))(3.0),
    lax.rsqrt(4.0),
    lax.max(1.0, 2.0),
)
