def sqrt(n, guess=1.0):
    better = (guess + n / guess) / 2
    if abs(better - guess) < 1e-13:
        return better
    return sqrt(n, better)
