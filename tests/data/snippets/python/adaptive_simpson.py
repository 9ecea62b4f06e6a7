import math

def simpson(f, a, b):
    return (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b))

def adaptive(f, a, b, depth):
    c = (a + b) / 2
    if depth == 0:
        return simpson(f, a, b)
    return adaptive(f, a, c, depth - 1) + adaptive(f, c, b, depth - 1)

def area(a, b, p):
    return adaptive(lambda x: math.exp(-x ** 2) * math.cos(p * x), a, b, 3)
