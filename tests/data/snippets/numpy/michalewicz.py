import numpy as np
from numpy import pi, sin

def michalewicz(x, m=10):
    x = np.asarray(x)
    j = np.arange(1., len(x) + 1)
    return -np.sum(sin(x) * sin(j * x**2 / pi) ** (2 * m))
