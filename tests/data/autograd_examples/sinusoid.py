import autograd.numpy as np
from autograd import grad


def taylor_sine(x):
    ans = currterm = x
    i = 0
    while np.abs(currterm) > 0.001:
        currterm = -currterm * x**2 / ((2 * i + 3) * (2 * i + 2))
        ans = ans + currterm
        i += 1
    return ans


d_sine, dd_sine = grad(taylor_sine), grad(grad(taylor_sine))
for x in np.linspace(-4, 4, 7):
    show(taylor_sine(x), d_sine(x), dd_sine(x))
