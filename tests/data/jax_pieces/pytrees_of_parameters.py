import jax
import jax.numpy as jnp
from jax import grad, jit
from jax.flatten_util import ravel_pytree

params = [{"w": jnp.ones((2, 3)) * 0.1, "b": jnp.zeros(3)}, {"w": jnp.ones((3, 1)) * 0.2, "b": jnp.zeros(1)}]


def fwd(params, x):
    *hidden, last = params
    for l in hidden:
        x = jax.nn.relu(x @ l["w"] + l["b"])
    return x @ last["w"] + last["b"]


x = jnp.arange(4.0).reshape(2, 2)
y = jnp.ones((2, 1))


def loss(p):
    return jnp.mean((fwd(p, x) - y) ** 2)


@jit
def update(p):
    g = grad(loss)(p)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, p, g)


for _ in range(3):
    params = update(params)
show(params)
v, un = ravel_pytree(params)
show(v, un(v * 2))
show(jax.tree.map(lambda x: x + 1, {"a": (1, None, [2.0])}), len(jax.tree_util.tree_leaves(params)))
l, t = jax.tree_util.tree_flatten({"b": 1, "a": [2, 3]})
show(l, jax.tree_util.tree_unflatten(t, [x * 2 for x in l]))
show(
    jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(2.0),
    grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(2.0),
    grad(jax.remat(lambda p: jnp.sum(p["a"] ** 2)))({"a": jnp.ones(2)}),
)
