def generating(x, n=12):
    a, b = 0, 1
    s = 0
    for i in range(n):
        s += a * x**i
        a, b = b, a + b
    return s
