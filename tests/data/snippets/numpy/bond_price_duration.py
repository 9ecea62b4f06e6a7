import numpy as np

def bond_price(face, coupon, ytm, n):
    t = np.arange(1, n + 1)
    cf = np.full(n, face * coupon)
    cf[-1] += face
    return np.sum(cf / (1 + ytm) ** t)
