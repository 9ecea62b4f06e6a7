import json

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def f(x, q):
    return jnp.log(x**q)


value, (x, q) = jax.value_and_grad(f, (0, 1))(5.0, 3.0)
print(json.dumps({"value": float(value), "grad": {"x": float(x), "q": float(q)}}))
