import math

def true_anomaly(M, ecc):
    E = M
    while True:
        dE = (E - ecc * math.sin(E) - M) / (1 - ecc * math.cos(E))
        E -= dE
        if abs(dE) < 1e-14:
            break
    return 2 * math.atan2(math.sqrt(1 + ecc) * math.sin(E / 2), math.sqrt(1 - ecc) * math.cos(E / 2))
