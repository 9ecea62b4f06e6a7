import numpy as np

def huber_loss(y, pred, delta=1.0):
    error = y - pred
    is_small = np.abs(error) <= delta
    squared = 0.5 * error**2
    linear = delta * (np.abs(error) - 0.5 * delta)
    return np.mean(np.where(is_small, squared, linear))
