def smoothstep(x, lo=0.0, hi=1.0):
    if not lo <= x <= hi:
        return 0.0 if x < lo else 1.0
    t = (x - lo) / (hi - lo)
    return t * t * (3 - 2 * t)

def f(a, b):
    return smoothstep(a) + 10 * smoothstep(b, hi=2.0) + smoothstep(a + 5)
