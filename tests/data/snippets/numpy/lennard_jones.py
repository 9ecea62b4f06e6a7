def lj_potential(positions, epsilon=1.0, sigma=1.0):
    energy = 0
    n = positions.shape[0]
    for i in range(n - 1):
        d = positions[i+1:] - positions[i]
        r2 = np.sum(d * d, axis=1)
        sr6 = (sigma**2 / r2) ** 3
        energy += np.sum(4 * epsilon * (sr6**2 - sr6))
    return energy
