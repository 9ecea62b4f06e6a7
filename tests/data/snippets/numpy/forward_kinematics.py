import numpy as np

def end_effector(angles, lengths):
    cum = np.cumsum(angles)
    return np.array([np.sum(lengths * np.cos(cum)), np.sum(lengths * np.sin(cum))])

err = end_effector(angles, lengths) - target
err @ err
