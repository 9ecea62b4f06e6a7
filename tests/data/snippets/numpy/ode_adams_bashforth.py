import numpy as np

def f(t, y):
    return -2.0 * y + np.sin(t)

def ab2(y0, h, n=20):
    t = 0.0
    y = y0
    f_prev = f(t, y)
    # bootstrap with one Heun step
    y_pred = y + h * f_prev
    y = y + 0.5 * h * (f_prev + f(t + h, y_pred))
    t += h
    for _ in range(1, n):
        f_cur = f(t, y)
        y = y + h * (1.5 * f_cur - 0.5 * f_prev)
        f_prev = f_cur
        t += h
    return y
