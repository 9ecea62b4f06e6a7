import numpy as np

def savgol_residual(y: np.ndarray, window: int = 5) -> float:
    """Squared residual of a quadratic Savitzky-Golay smoother (interior points)."""
    half = window // 2
    t = np.arange(-half, half + 1)
    V = np.vander(t, 3, increasing=True)
    coeffs = np.linalg.pinv(V)[0]          # weights of the smoothed value
    smooth = np.convolve(y, coeffs[::-1], mode='valid')
    r = y[half:-half] - smooth
    return np.sum(r ** 2)
