def deriv(poly):
    return [i * poly[i] for i in range(1, len(poly))]

def evaluate(poly, x):
    s = 0
    for i, a in enumerate(poly):
        s += a * x ** i
    return s

evaluate(deriv(poly), x) * evaluate(poly, x)
