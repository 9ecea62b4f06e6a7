import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.builtins import tuple
from autograd.misc.optimizers import adam
from autograd.scipy.integrate import odeint

t, y0 = np.linspace(0.0, 1.0, 4), np.array([2.0, 0.0])
true_y = odeint(lambda y, t, A: np.dot(y**3, A), y0, t, args=(np.array([[-0.1, 2.0], [-2.0, -0.1]]),))
rs = npr.RandomState(0)


def nn_predict(inputs, t, params):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs


def loss(params, i):
    pred = odeint(nn_predict, y0, t, tuple((params,)), rtol=1e-9, atol=1e-9)
    return np.mean(np.abs(pred - true_y))


init_params = [(rs.randn(2, 3) * 0.5, rs.randn(3) * 0.5), (rs.randn(3, 2) * 0.5, rs.randn(2) * 0.5)]
params = adam(grad(loss), init_params, num_iters=2, step_size=0.05)
show(loss(init_params, 0), loss(params, 0), params)
