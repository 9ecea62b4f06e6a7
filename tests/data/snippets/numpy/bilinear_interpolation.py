import numpy as np

def bilinear(img, x, y):
    x0 = int(np.floor(x))
    y0 = int(np.floor(y))
    x1, y1 = x0 + 1, y0 + 1
    wa = (x1 - x) * (y1 - y)
    wb = (x1 - x) * (y - y0)
    wc = (x - x0) * (y1 - y)
    wd = (x - x0) * (y - y0)
    return wa * img[y0, x0] + wb * img[y1, x0] + wc * img[y0, x1] + wd * img[y1, x1]
