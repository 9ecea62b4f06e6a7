def euler(f, y0, h, n):
    t, y = 0.0, y0
    for i in range(n):
        y = y + h * f(t, y)
        t = t + h
    return y

euler(lambda t, y: -k * y + t**2, y0, h, 10)
