margins = 1 - y * (X @ w + b)
0.5 * np.dot(w, w) + C * np.sum(np.maximum(0, margins))
