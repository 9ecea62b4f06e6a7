import numpy as np

N = 6
def step(u, alpha):
    A = np.zeros((N, N))
    B = np.zeros((N, N))
    for i in range(N):
        A[i, i] = 1 + alpha
        B[i, i] = 1 - alpha
        if i > 0:
            A[i, i-1] = -alpha / 2
            B[i, i-1] = alpha / 2
        if i < N - 1:
            A[i, i+1] = -alpha / 2
            B[i, i+1] = alpha / 2
    return np.linalg.solve(A, B @ u)

def heat_energy(u, alpha):
    for _ in range(3):
        u = step(u, alpha)
    return 0.5 * np.sum(u * u)
