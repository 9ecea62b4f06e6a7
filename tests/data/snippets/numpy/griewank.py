import numpy as np

def griewank(x: np.ndarray) -> float:
    i = np.arange(1, len(x) + 1)
    return 1 + np.sum(x ** 2) / 4000 - np.prod(np.cos(x / np.sqrt(i)))
