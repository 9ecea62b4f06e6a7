from math import sqrt

def potential_energy(masses, xs, ys, G=1.0):
    e = 0.0
    for i, (m1, x1, y1) in enumerate(zip(masses, xs, ys)):
        for m2, x2, y2 in zip(masses[:i], xs[:i], ys[:i]):
            e -= G * m1 * m2 / sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2)
    return e
