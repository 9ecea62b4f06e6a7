import math

def solve(a, b, c):
    d = b**2 - 4*a*c
    if d < 0:
        return float('nan')
    return (-b + math.sqrt(d)) / (2*a)
