def find_root(target):
    lo, hi = 0.0, 4.0
    while hi - lo > 1e-3:
        mid = (lo + hi) / 2
        if mid ** 3 + mid < target:
            lo = mid
        else:
            hi = mid
    # polish with Newton
    x = (lo + hi) / 2
    for _ in range(4):
        x -= (x ** 3 + x - target) / (3 * x ** 2 + 1)
    return x
