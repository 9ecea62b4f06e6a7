import numpy as np

def coulomb_energy(pos, q, k=1.0):
    N = len(q)
    E = 0.0
    for i in range(N):
        for j in range(i + 1, N):
            r = np.linalg.norm(pos[i] - pos[j])
            E += k * q[i] * q[j] / r
    return E
