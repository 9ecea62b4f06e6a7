def horner(coeffs, x):
    result = 0
    for c in reversed(coeffs):
        result = result * x + c
    return result
