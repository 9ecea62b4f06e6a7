import numpy as np

def adam(x, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    m = np.zeros_like(x)
    v = np.zeros_like(x)
    for t in range(1, 4):
        g = 4 * x**3 - 2 * x
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        x = x - lr * m_hat / (np.sqrt(v_hat) + eps)
    return np.sum(x**4 - x**2)
