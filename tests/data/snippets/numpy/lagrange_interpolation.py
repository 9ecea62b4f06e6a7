def lagrange(x, xs, ys):
    n = len(xs)
    total = 0.0
    for j in range(n):
        basis = 1.0
        for m in range(n):
            if m != j:
                basis *= (x - xs[m]) / (xs[j] - xs[m])
        total += ys[j] * basis
    return total
