import numpy as np

def pearson(x, y):
    xm, ym = x - x.mean(), y - y.mean()
    return (xm * ym).sum() / np.sqrt((xm**2).sum() * (ym**2).sum())
