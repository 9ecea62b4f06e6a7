def legendre(n, x):
    if n == 0:
        return 1.0
    elif n == 1:
        return x
    return ((2*n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n
