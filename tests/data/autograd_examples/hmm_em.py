from functools import partial

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad as vgrad
from autograd.scipy.special import logsumexp

npr.seed(0)


def normalize(a):
    return a / np.where(a.sum(-1, keepdims=True) > 0.0, a.sum(-1, keepdims=True), 1.0)


def log_partition_function(natural_params, data):
    if isinstance(data, list):
        return sum(map(partial(log_partition_function, natural_params), data))
    log_pi, log_A, log_B = natural_params
    log_alpha = log_pi
    for y in data:
        log_alpha = logsumexp(log_alpha[:, None] + log_A, axis=0) + log_B[:, y]
    return logsumexp(log_alpha)


data = [npr.randint(4, size=6) for _ in range(3)]
params = [normalize(npr.rand(*shape)) for shape in ((3,), (3, 3), (3, 4))]
for _ in range(5):
    loglike, statistics = vgrad(log_partition_function)(list(map(np.log, params)), data)
    params = list(map(normalize, statistics))
    show(loglike)
show(params)
