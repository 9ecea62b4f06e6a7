def cf_tan(x, depth):
    value = 2 * depth + 1
    while depth > 0:
        value = (2 * depth - 1) - x * x / value
        depth -= 1
    return x / value
