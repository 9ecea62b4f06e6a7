import jax.numpy as jnp
import numpy as np
from jax import jit, lax, vmap


def convolve(x, w):
    out = []
    for i in range(1, len(x) - 1):
        out.append(jnp.dot(x[i - 1 : i + 2], w))
    return jnp.array(out)


x = np.arange(5)
w = np.array([2.0, 3.0, 4.0])
show(convolve(x, w))
xs = np.stack([x, x])
ws = np.stack([w, w])
show(
    vmap(convolve)(xs, ws),
    vmap(convolve, in_axes=1, out_axes=1)(xs.T, ws.T),
    vmap(convolve, in_axes=[0, None])(xs, w),
    jit(vmap(convolve))(xs, ws),
)
show(vmap(lambda d, y: d["a"] * y, in_axes=({"a": 0}, None))({"a": jnp.arange(3.0)}, 2.0))
show(vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(jnp.array([-1.0, 1.0])))
