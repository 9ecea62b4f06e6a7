def logistic_map(r, x0, steps=6):
    xs = [x0]
    while len(xs) <= steps:
        xs.append(r * xs[-1] * (1 - xs[-1]))
    return xs[-1]
