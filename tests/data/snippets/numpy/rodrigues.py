import numpy as np

def rotate(v, axis, angle):
    """Rodrigues' rotation formula."""
    k = axis / np.linalg.norm(axis)
    return (v * np.cos(angle)
            + np.cross(k, v) * np.sin(angle)
            + k * np.dot(k, v) * (1 - np.cos(angle)))
