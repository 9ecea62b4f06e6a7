from math import prod, sqrt, log

def means(xs):
    n = len(xs)
    am = sum(xs) / n
    gm = prod(xs) ** (1 / n)
    hm = n / sum(1 / v for v in xs)
    qm = sqrt(sum(v * v for v in xs) / n)
    return am + gm + hm + qm
