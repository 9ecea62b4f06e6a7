import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, hessian, jacfwd, jacrev, jit, value_and_grad, vmap

show(grad(jnp.tanh)(2.0), grad(grad(jnp.tanh))(2.0), grad(grad(grad(jnp.tanh)))(2.0))


def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2) + 1)


def predict(W, b, inputs):
    return sigmoid(jnp.dot(inputs, W) + b)


inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
targets = jnp.array([True, True, False, True])


def loss(W, b):
    preds = predict(W, b, inputs)
    label_probs = preds * targets + (1 - preds) * (1 - targets)
    return -jnp.sum(jnp.log(label_probs))


W = jnp.array([0.1, -0.2, 0.3])
b = 0.4
show(
    grad(loss, argnums=0)(W, b),
    grad(loss, argnums=1)(W, b),
    grad(loss, (0, 1))(W, b),
    value_and_grad(loss, (0, 1))(W, b),
)


def loss2(p):
    return loss(p["W"], p["b"])


show(grad(loss2)({"W": W, "b": b}))
f = lambda W: predict(W, b, inputs)
show(jacfwd(f)(W), jacrev(f)(W), jit(hessian(lambda W: loss(W, b)))(W))
y, u = jax.jvp(f, (W,), (jnp.array([1.0, 2.0, 3.0]),))
show(y, u)
y, pull = jax.vjp(f, W)
show(pull(y))


def hvp(f, x, v):
    return grad(lambda x: jnp.vdot(grad(f)(x), v))(x)


show(hvp(lambda W: loss(W, b), W, jnp.ones(3)))


def vmjp(f, x, M):
    y, vjp_fun = jax.vjp(f, x)
    (outs,) = vmap(vjp_fun)(M)
    return outs


show(vmjp(f, W, jnp.eye(4)))
show(vmap(grad(lambda W, x: jnp.sum(jnp.sin(W * x))), in_axes=(None, 0))(W, inputs))
show(grad(lambda x: jnp.sum(x**2))(np.array([1.0, 2.0])), jax.jacobian(jnp.sin)(np.arange(3.0)))
