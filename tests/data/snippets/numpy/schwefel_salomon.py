import numpy as np

def schwefel(x):
    return 418.9829 * x.size - np.dot(x, np.sin(np.sqrt(np.abs(x))))

def salomon(x):
    r = np.sqrt((x**2).sum())
    return 1 - np.cos(2*np.pi*r) + 0.1*r

def objective(x): return schwefel(x) * 1e-2 + salomon(x)
