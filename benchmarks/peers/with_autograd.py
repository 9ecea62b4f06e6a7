import json

import autograd.numpy as np
from autograd import grad


def f(x, q):
    return np.log(x**q)


x, q = 5.0, 3.0
print(json.dumps({"value": float(f(x, q)), "grad": {"x": float(grad(f, 0)(x, q)), "q": float(grad(f, 1)(x, q))}}))
