def lerp(a: float, b: float, t: float) -> float:
    return (1 - t) * a + t * b

def interpolate(xs: list[float], ys: list[float], x: float) -> float:
    if x <= xs[0]:
        return ys[0]
    for i in range(1, len(xs)):
        if x <= xs[i]:
            t = (x - xs[i - 1]) / (xs[i] - xs[i - 1])
            return lerp(ys[i - 1], ys[i], t)
    return ys[-1]
