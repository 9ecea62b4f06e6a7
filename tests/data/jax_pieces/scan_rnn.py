import jax
import jax.numpy as jnp
from jax import grad, jacrev, lax, vmap

W = jnp.array([[0.1, 0.2], [0.3, -0.4]])
xs = jnp.arange(6.0).reshape(3, 2)


def rnn(W, xs):
    def step(h, x):
        h = jnp.tanh(W @ h + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(2), xs)


show(rnn(W, xs), grad(lambda W: rnn(W, xs)[1].sum())(W), jacrev(lambda W: rnn(W, xs)[0])(W))
show(
    lax.scan(lambda c, _: (c * 2, c), 1.0, None, length=4),
    lax.scan(lambda c, x: (c + x["a"], None), 0.0, {"a": jnp.arange(3.0)}, reverse=True),
    lax.fori_loop(0, 4, lambda i, x: x * 2 + i, 1.0),
    lax.map(jnp.sin, jnp.arange(3.0)),
    lax.switch(1, [jnp.sin, jnp.cos], 2.0),
)
show(vmap(lambda x: lax.scan(lambda c, y: (c * y, c), x, jnp.arange(1.0, 4.0)))(jnp.arange(2.0)))
show(jax.hessian(lambda x: lax.fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0))
