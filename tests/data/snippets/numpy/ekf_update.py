import numpy as np

def ekf(x, P, z, R):
    # range-bearing measurement
    px, py = x
    r = np.hypot(px, py)
    H = np.array([[px / r, py / r], [-py / r**2, px / r**2]])
    h = np.array([r, np.arctan2(py, px)])
    S = H @ P @ H.T + R * np.eye(2)
    K = P @ H.T @ np.linalg.inv(S)
    x_new = x + K @ (z - h)
    P_new = (np.eye(2) - K @ H) @ P
    return x_new @ x_new + np.trace(P_new)
