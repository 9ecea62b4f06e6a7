def even_part(x, n):
    if n == 0:
        return 1.0
    return x * odd_part(x, n - 1) + 0.5

def odd_part(x, n):
    if n == 0:
        return 0.0
    return even_part(x, n - 1) - x

even_part(x, 5)
