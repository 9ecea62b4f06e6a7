from math import factorial

def sin_taylor(x, n=10):
    return sum((-1)**k * x**(2*k+1) / factorial(2*k+1) for k in range(n))
