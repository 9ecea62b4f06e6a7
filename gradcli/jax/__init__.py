"""JAX's names for functions of gradcli: `import gradcli.jax as jax`, `import gradcli.jax.numpy as jnp`.

Arrays are tensors of NumPy arrays, in float64 by default.
"""

from gradcli.autograd.tensor import Tensor as Array
from gradcli.jax import config, flatten_util, lax, nn, numpy, random, scipy, tree, tree_util
from gradcli.jax.custom_derivatives import custom_jvp, custom_vjp
from gradcli.jax.transformations import (
    block_until_ready,
    checkpoint,
    device_get,
    device_put,
    disable_jit,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    remat,
    value_and_grad,
    vjp,
    vmap,
)
from gradcli.jax.tree_util import tree_map

__all__ = [
    "Array",
    "block_until_ready",
    "checkpoint",
    "config",
    "custom_jvp",
    "custom_vjp",
    "device_get",
    "device_put",
    "disable_jit",
    "eval_shape",
    "flatten_util",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "nn",
    "numpy",
    "random",
    "remat",
    "scipy",
    "tree",
    "tree_map",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]
