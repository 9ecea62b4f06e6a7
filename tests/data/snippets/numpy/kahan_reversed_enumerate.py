import numpy as np
def poly(coeffs, x):
    return sum(c * x**i for i, c in enumerate(reversed(coeffs)))

def weighted(coeffs, x):
    acc = 0.0
    for (i, c), w in zip(enumerate(coeffs), (1.0, 0.5, 0.25)):
        acc += w * c * (i + 1)
    return acc * poly(coeffs, x)
