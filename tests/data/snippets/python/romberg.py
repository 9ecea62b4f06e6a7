import math

def romberg(a, b, k):
    f = lambda x: math.exp(-k * x * x)
    R = [[0.0] * 5 for _ in range(5)]
    h = b - a
    R[0][0] = 0.5 * h * (f(a) + f(b))
    for i in range(1, 5):
        h /= 2
        s = sum(f(a + (2*j - 1) * h) for j in range(1, 2**(i-1) + 1))
        R[i][0] = 0.5 * R[i-1][0] + h * s
        for j in range(1, i + 1):
            R[i][j] = R[i][j-1] + (R[i][j-1] - R[i-1][j-1]) / (4**j - 1)
    return R[4][4]
