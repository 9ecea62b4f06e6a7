import math

def agm(a, b):
    for _ in range(6):
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a
