def geometric_mean(values):
    product = 1
    for v in values:
        product *= v
    return product ** (1 / len(values))
